"""Letters of every shape, and filters made from what is in them, so that most of them find something."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from redrive.dead_letter import DeadLetter, Entry, Status
from redrive.event import describe
from redrive.failure import FailureKind
from redrive.message import Headers, Message
from redrive.search import COMPARISONS, DataTerm, Field, FieldTerm, Filter, HeaderTerm, Op, Term, TextTerm
from redrive.search_document import body_words, document, error_words, header_text
from redrive.search_terms import MAX_PLACES, index_of
from redrive.testing.letters import NOON, a_failure, a_message, an_entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.access import Scope

QUEUES = [
    "orders",
    "orders.eu",
    "Orders",
    "mail",
    "mail\u00e9",
    "mail\U0001f600",
    "\u00e9t\u00e9",
    "a\x00b",
    "%",
    "\U0010ffff\U0010ffff",
]
HANDLERS = ["charge", "charge_card", "refund", "_"]
TYPES = ["TimeoutError", "shop.errors.TimeoutError", "shop.errors.Timeout", "KeyError", "a.b.", "\u00dcbel"]
SOURCES = [None, "shop", "shop-2", "", "\u241b0000", "\ud800"]
OWNERS = [None, "payments", "pay", "\u00e9quipe"]
TEXTS = [
    "connection refused by 10.0.0.1:5432",
    "CONNECTION reset",
    "order 17 has no customer",
    "N\u00e3o foi poss\u00edvel conectar \u00e0 base",
    "n'est pas l\u00e0; \x00 \ud83d\ude00 stra\u00dfe",
    "",
]
KEYS = [
    "id",
    "customer",
    "items",
    "0",
    "1",
    "a b",
    'quo"te',
    "",
    "\u00e9",
    "Id",
    "$",
    "\\",
    "tags",
    "n\x00l",
    "data",
]
NUMBERS = [
    "0", "-0", "1", "1.0", "1e0", "10e-1", "2", "-1", "-1.5", "1.50", "100", "1E2", "0.1", "9007199254740993",
    "9007199254740992", "123456789012345678901234567890", "1e400", "1e-400", "1e99999", "9" * 1100, "3.14159",
]  # fmt: skip
STRINGS = [
    "", "A", "B", "abc", "abd", "ab", "1", "1.0", "true", "null", "\u00e9", "z\u00fc", "\x00", "a\x00b", "\ud800",
    "\U0001f600", "\uffff", "2026-01-01", "2026-02-01", "it's", 'say "hi"', "back\\slash", "%_", "\ufffd",
]  # fmt: skip
HEADER_NAMES = ["tenant", "Tenant", "x-id", "", "a.b", "\u00e9", "n\x00", "x y"]
HEADER_VALUES: list[Any] = [
    "acme", "acme-2", "", "\x00x", 5, 5.5, True, None, b"bytes", b"\xff", [1, 2], {"a": 1}, 2**70, 10**1200,
    datetime(2026, 1, 1, tzinfo=UTC), "\u241b", "\ud800",
]  # fmt: skip


LARGE = {
    1: ("word " * 700 + "end of words").encode(),
    2: (" ".join(f"w{each}" for each in range(11_000))).encode(),
    3: b'{"filler": "' + b"x" * 1_100_000 + b'", "late": "tail"}',
    4: b'{"many": [' + b",".join(b'{"sku": "s%d"}' % each for each in range(3000)) + b"]}",
}
"""The bodies of these letters: more words than a part of the index can hold, and more bytes than are searched."""


def seeded(number: int) -> Random:
    return Random(number)  # noqa: S311  the same letters and filters every time


def an_order(random: Random, number: int) -> Entry:
    """The entry of a letter with this number. Some have the same time."""
    queue, handler = random.choice(QUEUES), random.choice(HANDLERS)
    at = NOON + timedelta(minutes=random.randrange(0, 60 * 24 * 3, 7))
    kind = random.choice(list(FailureKind))
    failures = tuple(
        a_failure(each, at=at, type=random.choice(TYPES), text=random.choice(TEXTS), kind=kind, handler=handler)
        for each in range(1, random.randint(1, 4) + 1)
    )
    return an_entry(
        f"letter {number}",
        message=a_delivery(random, number),
        queue=queue,
        handler=handler,
        failures=failures,
        group=f"group {random.randrange(12)}",
        at=at,
    )


def a_delivery(random: Random, number: int = 0) -> Message:
    headers = _headers(random)
    if random.random() < 0.3 and number not in LARGE:
        metadata = {"correlation_id": f"c-{random.randrange(5)}"} if random.random() < 0.5 else {}
        data = json.loads(_json(random), parse_float=str)
        return Message.create(
            id=f"m{number}", sent_at=NOON, queue="q", data=_encodable(data), metadata=metadata, headers=headers
        )
    return a_message(
        id=f"m{number}",
        queue="q",
        body=LARGE.get(number, _body(random)),
        headers=headers,
        source=random.choice(SOURCES),
    )


def _encodable(value: Any) -> Any:
    """Without what our producer refuses to send."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return {_encodable(key): _encodable(each) for key, each in value.items()} if isinstance(value, dict) else value


def _headers(random: Random) -> Headers:
    return tuple(
        (random.choice(HEADER_NAMES), random.choice(HEADER_VALUES)) for _ in range(random.choice([0, 0, 1, 2, 5]))
    )


def _body(random: Random) -> bytes | None:
    strange = [
        None,
        b"",
        b"plain text, no JSON: connection refused",
        b"\xff\xfe\x00binary \x80 data",
        "d\u00e9j\u00e0 vu \u4f60\u597d".encode(),
        b"{not json}",
        b'{"a": NaN}',
        b"[" * 150 + b"]" * 150,
        b'"\\ud83d\\ude00 escaped \\u00e9t\\u00e9\\nnext"',
        b" [1] ",
        b"\xef\xbb\xbf{}",
    ]
    return random.choice(strange) if random.random() < 0.2 else _json(random).encode()


def _json(random: Random, depth: int = 0) -> str:
    """Written by hand, so that numbers and escapes stand as they are meant to."""
    kind = random.random()
    if depth > 3 or kind < 0.35:
        plain = [*NUMBERS, "true", "false", "null", *(json.dumps(each) for each in STRINGS), '"\\u00e9"']
        return random.choice(plain)
    if kind < 0.6:
        return "[" + ",".join(_json(random, depth + 1) for _ in range(random.randrange(4))) + "]"
    members = (
        f"{json.dumps(random.choice(KEYS))}: {_json(random, depth + 1)}" for _ in range(random.randrange(5))
    )
    return "{" + ", ".join(members) + "}"


def facts_of(letter: DeadLetter, owner: str | None) -> dict[str, str | None]:
    """What `search_match.matches` wants to be told about a letter."""
    original = letter.revisions[0].message if letter.revisions else letter.message
    event = describe(original, letter.queue)
    return {"event_type": event.event_type, "correlation": event.correlation_id, "owner": owner}


class Asker:
    """Filters about these letters."""

    def __init__(self, random: Random, letters: list[DeadLetter], owners: dict[str, str | None]) -> None:
        self._random = random
        self._letters = letters
        self._owners = owners

    def filter(self) -> Filter:
        terms = [self._term() for _ in range(self._random.choice([1, 1, 1, 2, 2, 3, 0]))]
        return Filter(tuple(terms))

    def scope(self) -> Scope:
        """Half of the time none. Names and beginnings of names, some of no queue; sometimes nothing at all."""
        if self._random.random() < 0.5:
            return None
        names = self._random.choices([*QUEUES, "ORDERS", "mai", "nothing", ""], k=self._random.randrange(4))
        cut = [each[: self._random.randint(0, len(each))] for each in self._random.choices(QUEUES, k=2)]
        return (*names, *(f"{each}*" for each in self._random.sample(cut, self._random.randrange(3))))

    def _term(self) -> Term:
        letter = self._random.choice(self._letters)
        kinds: list[Callable[[DeadLetter], Term]] = [
            self._field,
            self._field,
            self._field,
            self._data,
            self._data,
            self._header,
            self._text,
        ]
        return self._random.choice(kinds)(letter)

    @property
    def _negated(self) -> bool:
        return self._random.random() < 0.25

    def _field(self, letter: DeadLetter) -> FieldTerm:
        field = self._random.choice(list(Field))
        if field in {Field.CREATED, Field.CHANGED}:
            moment = letter.created_at if field is Field.CREATED else letter.changed_at
            near = moment + timedelta(microseconds=self._random.choice([-1, 0, 1]))
            return FieldTerm(field=field, op=self._comparison, values=(near,), negated=self._negated)
        if field in {Field.ATTEMPTS, Field.GENERATION, Field.REVISION}:
            op = self._random.choice([Op.IS, self._comparison])
            return FieldTerm(field=field, op=op, values=(self._random.randrange(5),), negated=self._negated)
        if field in {Field.ID, Field.GROUP}:
            whole = letter.id if field is Field.ID else letter.group_id
            part = whole[: self._random.choice([4, 8, 12, 30, 36])]
            return FieldTerm(field=field, op=Op.BEGINS, values=(part,), negated=self._negated)
        if field in {Field.STATUS, Field.KIND}:
            known = list(map(str, Status if field is Field.STATUS else FailureKind))
            values = tuple(self._random.sample(known, self._random.randint(1, 2)))
            return FieldTerm(field=field, op=Op.IS, values=values, negated=self._negated)
        op, values = self._about(self._value(field, letter) or "none")
        return FieldTerm(field=field, op=op, values=values, negated=self._negated)

    def _value(self, field: Field, letter: DeadLetter) -> str | None:
        told = facts_of(letter, self._owners.get(letter.group_id))
        return {
            Field.QUEUE: letter.queue,
            Field.TYPE: self._random.choice([letter.type, letter.type.rpartition(".")[2]]),
            Field.HANDLER: letter.handler,
            Field.SOURCE: letter.message.source,
            Field.CORRELATION: told["correlation"],
            Field.EVENT: told["event_type"],
            Field.OWNER: told["owner"],
        }[field]

    def _about(self, value: str) -> tuple[Op, tuple[str, ...]]:
        """IS, BEGINS or EXISTS, with values that may be of several letters."""
        op = self._random.choice([Op.IS, Op.IS, Op.BEGINS, Op.EXISTS])
        if op is Op.EXISTS:
            return op, ()
        wanted = value if op is Op.IS else value[: self._random.randint(1, max(1, len(value)))]
        values = [wanted, *(self._random.choice(STRINGS + QUEUES) for _ in range(self._random.choice([0, 0, 1])))]
        # A filter holds no empty value (of these fields), no NUL and no lone surrogate: the grammar refuses them.
        askable = [each for each in values if each and "\x00" not in each and each.isprintable()]
        return op, tuple(askable) or ("none",)

    def _header(self, letter: DeadLetter) -> HeaderTerm:
        headers = letter.message.headers or (("tenant", "acme"),)
        name, value = self._random.choice(headers)
        op, values = self._about(header_text(value) or "acme")
        return HeaderTerm(name=name.replace("\x00", "") or "none", op=op, values=values, negated=self._negated)

    def _data(self, letter: DeadLetter) -> DataTerm:
        path, end = self._walk(document(letter.message))
        if isinstance(end, list) and end:
            end = self._random.choice(end)
        op = self._random.choice([Op.IS, Op.IS, Op.IS, Op.BEGINS, Op.EXISTS, self._comparison])
        negated = self._negated
        if op is Op.EXISTS:
            return DataTerm(path=path, op=op, negated=negated)
        value = self._written(end)
        if op is Op.BEGINS:
            value = value[: self._random.randint(1, 3)] or "a"
        several = [value] if op in COMPARISONS else [value, *self._random.sample(["1", "true", "abc"], 1)]
        return DataTerm(path=path, op=op, values=tuple(several[: self._random.randint(1, 2)]), negated=negated)

    def _walk(self, value: Any) -> tuple[tuple[str, ...], Any]:
        """A path that leads somewhere, as a rule, and where."""
        path: list[str] = []
        while self._random.random() < 0.85 or not path:
            if isinstance(value, dict) and value:
                key = self._random.choice(list(value))
                path.append(key)
                value = value[key]
            elif isinstance(value, list) and value:
                place = self._random.randrange(len(value))
                value = value[place]
                if not isinstance(value, dict) or self._random.random() < 0.5:
                    path.append(str(place))
            else:
                break
        if not path or self._random.random() < 0.1:
            path.append(self._random.choice(["0", "id", "nowhere", "", "1"]))
        askable = ["".join(each for each in segment if each.isprintable()) for segment in path]
        places = [each for each in askable if index_of(each) is not None]
        return tuple(askable if len(places) <= MAX_PLACES else askable[:MAX_PLACES]), value

    def _written(self, value: Any) -> str:
        """As somebody might write it in a filter."""
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, int | Decimal):
            forms = [str(value), f"{value}.0" if isinstance(value, int) else str(value), "1", "-1", "1e0", "2"]
            return self._random.choice(forms).replace("E", "e")
        if isinstance(value, str):
            return self._random.choice([value, value, "b", "1"]).replace("\x00", "")[:1024]
        return self._random.choice(["1", "abc", "null", "2026-01-15", "1.5"])

    @property
    def _comparison(self) -> Op:
        return self._random.choice(sorted(COMPARISONS))

    def _text(self, letter: DeadLetter) -> TextTerm:
        found = error_words(letter.type, letter.text)
        if self._random.random() < 0.5:
            found = body_words(letter.message.body) or found
        start = self._random.randrange(max(1, len(found)))
        phrase = found[start : start + self._random.choice([1, 1, 1, 2, 3, 32])] or ["nothing"]
        if self._random.random() < 0.1:
            phrase.reverse()
        begins = self._random.random() < 0.3
        if begins:
            phrase[-1] = phrase[-1][: self._random.randint(1, 5)]
        text = self._random.choice([" ", ", ", "-"]).join(phrase)
        return TextTerm(
            text=self._random.choice([text, text.upper(), text.title()]), begins=begins, negated=self._negated
        )
