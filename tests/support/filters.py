"""Filters for hypothesis: every kind of term, with the values that grammars and databases trip over."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from redrive.dead_letter import Status
from redrive.failure import FailureKind
from redrive.search import COMPARISONS, DataTerm, Field, FieldTerm, Filter, HeaderTerm, Op, Term, TextTerm
from redrive.search_terms import MAX_PLACES, index_of
from redrive.words import LONGEST_PHRASE, words

askable = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
text = st.text(askable | st.sampled_from('"\\*,:.-<> \t'), max_size=20)
some_text = text.filter(bool)
comparisons = st.sampled_from(sorted(COMPARISONS))
negated = st.booleans()


def several(values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(values, min_size=1, max_size=3).map(tuple)


def either(build: type, **given_fields: st.SearchStrategy[object]) -> st.SearchStrategy[Term]:
    """With values, or with none and EXISTS."""
    values = {"op": st.sampled_from([Op.IS, Op.BEGINS]), "values": several(some_text)}
    return st.builds(build, negated=negated, **given_fields, **values) | st.builds(
        build, negated=negated, **given_fields, op=st.just(Op.EXISTS)
    )


TEXT_FIELDS = (
    Field.QUEUE,
    Field.TYPE,
    Field.HANDLER,
    Field.SOURCE,
    Field.CORRELATION,
    Field.EVENT,
    Field.OWNER,
)
paths = (
    st.lists(text, min_size=1, max_size=16)
    .filter(lambda path: sum(index_of(each) is not None for each in path) <= MAX_PLACES)
    .map(tuple)
)
numbers = st.integers(0, 2**31 - 1)
moments = st.datetimes(timezones=st.just(UTC))
terms: st.SearchStrategy[Term] = st.one_of(
    either(FieldTerm, field=st.sampled_from(TEXT_FIELDS)),
    either(HeaderTerm, name=some_text),
    either(DataTerm, path=paths),
    st.builds(DataTerm, path=paths, op=comparisons, values=st.tuples(text), negated=negated),
    st.builds(DataTerm, path=paths, op=st.just(Op.IS), values=several(text), negated=negated),
    st.builds(HeaderTerm, name=some_text, op=st.just(Op.IS), values=several(text), negated=negated),
    st.builds(
        FieldTerm,
        field=st.just(Field.STATUS),
        op=st.just(Op.IS),
        values=several(st.sampled_from(list(map(str, Status)))),
        negated=negated,
    ),
    st.builds(
        FieldTerm,
        field=st.just(Field.KIND),
        op=st.just(Op.IS),
        values=several(st.sampled_from(list(map(str, FailureKind)))),
        negated=negated,
    ),
    st.builds(
        FieldTerm,
        field=st.sampled_from([Field.ID, Field.GROUP]),
        op=st.just(Op.BEGINS),
        values=several(st.text("0123456789abcdef", min_size=4, max_size=36)),
        negated=negated,
    ),
    st.builds(
        FieldTerm,
        field=st.sampled_from([Field.ATTEMPTS, Field.GENERATION, Field.REVISION]),
        op=comparisons,
        values=st.tuples(numbers),
        negated=negated,
    ),
    st.builds(
        FieldTerm,
        field=st.sampled_from([Field.ATTEMPTS, Field.GENERATION, Field.REVISION]),
        op=st.just(Op.IS),
        values=st.lists(numbers, min_size=1, max_size=3).map(tuple),
        negated=negated,
    ),
    st.builds(
        FieldTerm,
        field=st.sampled_from([Field.CREATED, Field.CHANGED]),
        op=comparisons,
        values=st.tuples(moments),
        negated=negated,
    ),
    st.builds(
        TextTerm,
        text=text.filter(lambda written: 0 < len(words(written)) <= LONGEST_PHRASE),
        begins=st.booleans(),
        negated=negated,
    ),
)

filters: st.SearchStrategy[Filter] = st.lists(terms, max_size=5).map(tuple).map(Filter)
