"""Masks hide what they should, and change nothing else."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redrive.dead_letter import DeadLetter, FailureGroup, Happening, Revision, Status
from redrive.failure import Failure, FailureKind, Frame, Raised
from redrive.message import Message
from redrive.privacy.maskers import Maskers
from redrive.privacy.masking import Masker
from redrive.privacy.rules import MaskingRules
from redrive.privacy.texts import LONGEST, NOT_JSON, NOT_TEXT, TOO_LONG
from support import hostile, privacy_corpus

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MASKER = Masker()
RULED = Masker(
    MaskingRules(
        fields=("nickname",),
        hidden=(("customer", "name"), ("items", "*", "holder"), ("a",), ("both",), ("list", "1")),
        shown=(("page", "token"), ("secret", "hint"), ("both",)),
    )
)
CPF, MAIL, CARD = "529.982.247-25", "joao@example.com", "4111 1111 1111 1111"


def masked(body: str, masker: Masker = MASKER) -> str:
    shown = masker.payload(body.encode("utf-8", "surrogatepass"))
    assert shown is not None
    return shown.decode()


_dice = privacy_corpus.seeded(7)
SECRETS = [make(_dice) for make in privacy_corpus.KINDS.values() for _ in range(5)]
_texts = st.text(max_size=20) | st.sampled_from([*SECRETS, '{"a": 1}', '{"senha": "x"}', f'["{CPF}"]', "\\", '"'])
_words = st.lists(_texts, max_size=3).map(" ".join)
_keys = st.text(max_size=6) | st.sampled_from(
    ["a", "password", "customer", "name", "items", "holder", "cpf", MAIL]
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _words | st.just(52998224725)
_values = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(_keys, inner), max_leaves=12)


@given(_values, st.sampled_from([None, 1, "\t"]), st.booleans(), st.sampled_from([MASKER, RULED]))
@settings(max_examples=200, deadline=None)
def test_json_stays_json_with_the_same_keys_and_masking_twice_is_masking_once(
    value: Any, indent: Any, ascii_only: Any, masker: Masker
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    shown = masked(body, masker)
    assert _shape(shown) == _shape(body)
    assert masked(shown, masker) == shown


def _shape(body: str) -> Any:
    """Lists and objects without what is in them; masked keys may be alike."""
    return _emptied(json.loads(body, object_pairs_hook=lambda pairs: [value for _, value in pairs], parse_int=str))


def _emptied(value: Any) -> Any:
    return [_emptied(each) for each in value] if isinstance(value, list) else None


@given(st.lists(st.text(max_size=20) | st.sampled_from(SECRETS), max_size=5).map(" ".join))
@example("a%40b.com 1.529.982.247-25")
@settings(max_examples=400, deadline=None)
def test_texts_masked_twice_are_masked_once(text: str) -> None:
    shown = MASKER.text(text)
    assert MASKER.text(shown) == shown


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0041 529.@=', max_size=60).map(str.encode))
@settings(max_examples=600, deadline=None)
def test_no_bytes_are_too_much(body: bytes) -> None:
    for masker in (MASKER, RULED):
        shown = masker.payload(body)
        assert masker.payload(shown) == shown


_PLAIN = st.text(alphabet="abcdefgh ij{}[],:\\/é\U0001f600\n\t", max_size=12)


@given(st.lists(st.tuples(_PLAIN, st.sampled_from([CPF, MAIL, CARD])), min_size=1, max_size=4), st.randoms())
@settings(max_examples=100, deadline=None)
def test_bytes_outside_masks_are_the_same_and_no_planted_value_survives(
    planted: list[tuple[str, str]], dice: random.Random
) -> None:
    """However strings are escaped, whatever stands between them."""
    kinds = {CPF: "[cpf]", MAIL: "[e-mail]", CARD: "[card]"}
    written = [(privacy_corpus.escaped_at_random(f" {text} ", dice), value) for text, value in planted]
    body = '{"x" :[1.10,1e5,\t%s, 12345678901234567890123]}'
    escaped = {value: privacy_corpus.escaped_at_random(value, dice)[1:-1] for value in kinds}
    before = ",\n".join(f"{text[:-1]}{escaped[value]}{text[1:]}" for text, value in written)
    after = ",\n".join(f"{text[:-1]}{kinds[value]}{text[1:]}" for text, value in written)
    assert masked(body % before) == body % after


def test_every_hostile_message_is_masked_within_bounds_and_read_again() -> None:
    for name, message in hostile.corpus():
        long = len(message.body or b"") > 100_000
        for masker in (MASKER,) if long else (MASKER, RULED):
            shown = masker.message(message)
            assert (shown.id, shown.queue, shown.sent_at) == (message.id, message.queue, message.sent_at), name
            assert (shown.envelope is None) == (message.envelope is None), name
            assert len(shown.body or b"") <= 2 * LONGEST, name
            assert long or masker.message(shown) == shown, name


@pytest.mark.parametrize("depth", [20_000, 100_000])
def test_no_depth_hides_a_value_or_breaks(depth: int) -> None:
    for opening, closing in (('{"a":', "}"), ("[", "]")):
        body = opening * depth + f'"{CPF}"' + closing * depth
        assert masked(body) == body.replace(CPF, "[cpf]")


def test_what_is_too_long_or_no_text_is_hidden_as_a_whole() -> None:
    assert masked("x" * LONGEST) == "x" * LONGEST
    assert masked("x" * (LONGEST + 1)) == TOO_LONG
    assert json.loads(masked('{"x": "' + "x" * 16 * LONGEST + '"}')) == TOO_LONG
    assert MASKER.text("x" * (LONGEST + 1)) == TOO_LONG
    assert MASKER.payload(b"\xff" + CPF.encode()) == NOT_TEXT.encode()
    assert MASKER.payload(CPF.encode("utf-16-le")) == NOT_TEXT.encode()
    assert MASKER.payload(None) is None
    assert MASKER.payload(b"") == b""


def test_an_envelope_that_is_too_long_keeps_what_is_ours() -> None:
    message = Message.create(
        id="m",
        sent_at=NOON,
        queue="q",
        data={"x": "x" * LONGEST, "cpf": CPF},
        metadata={"correlation_id": "c", "senha": "s"},
    )
    shown = MASKER.message(message)
    assert shown.data == TOO_LONG
    assert shown.metadata == {"correlation_id": "c", "senha": "[masked]"}


# Names


@pytest.mark.parametrize(
    "name",
    [
        *(
            "password",
            "PASSWORD",
            "db_password",
            "userPassword",
            "pass-word",
            "Senha",
            "senhaAtual",
            "client_secret",
        ),
        *(
            "accessToken",
            "X-Api-Key",
            "apiKey",
            "Authorization",
            "Set-Cookie",
            "cpf",
            "customerCpf",
            "CUSTOMER_CPF",
        ),
        *(
            "customer.cpf",
            "ssn",
            "iban",
            "card",
            "creditCard",
            "card_number",
            "cvv",
            "home_phone",
            *("cpf_do_cliente", "CPFNumber", "cvvCode", "phone2", "email_1"),
            "pass\\u0077ord",
        ),
    ],
)
def test_fields_are_hidden_by_their_names(name: str) -> None:
    assert (
        masked(f'{{"{name}": "x", "n": {{"{name}" : 7}}}}')
        == f'{{"{name}": "[masked]", "n": {{"{name}" : "[masked]"}}}}'
    )
    assert "pass\\u" in name or MASKER.header(name, "x") == "[masked]"


@pytest.mark.parametrize(
    "name",
    ["name", "pinned", "company", "cpfl", "phones_sold", "cardBrand", "discard", "spin", "id", "passenger", ""],
)
def test_other_fields_are_not(name: str) -> None:
    assert masked(f'{{"{name}": "x"}}') == f'{{"{name}": "x"}}'
    assert MASKER.header(name, "x") == "x"


def test_all_below_a_hidden_name_is_hidden_but_for_what_says_nothing() -> None:
    body = '{"secret": {"a": [1, "x", null, true, "", {}], "b": {"c": -1.5e3}}, "d": [1, "x"]}'
    assert masked(body) == (
        '{"secret": {"a": ["[masked]", "[masked]", null, true, "", {}], "b": {"c": "[masked]"}}, "d": [1, "x"]}'
    )


def test_a_backslash_before_a_quote_ends_no_string_unless_it_is_escaped_itself() -> None:
    body = r'{"a": "x\\", "b": "\"", "password": "p", "c": "\\\"", "senha": "s"}'
    assert masked(body) == body.replace('"p"', '"[masked]"').replace('"s"', '"[masked]"')


def test_what_a_mask_makes_readable_as_something_else_is_hidden_as_a_whole() -> None:
    assert MASKER.text(f"{CARD}.52998224725") == "[masked]"
    assert masked(f'["{CARD}.52998224725", "x"]') == '["[masked]", "x"]'


def test_keys_are_looked_through_too() -> None:
    assert masked(f'{{"{MAIL}": {{"x": 1}}}}') == '{"[e-mail]": {"x": 1}}'


# Rules


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"customer": {"name": "J", "id": 1}}', '{"customer": {"name": "[masked]", "id": 1}}'),
        ('{"customer": {"name": {"first": true}}}', '{"customer": {"name": {"first": "[masked]"}}}'),
        ('{"name": "J", "x": {"customer": {"name": "J"}}}', None),
        ('{"items": [{"holder":1},{"holder":2}]}', '{"items": [{"holder":"[masked]"},{"holder":"[masked]"}]}'),
        ('{"items": {"k": {"holder": "J"}}}', '{"items": {"k": {"holder": "[masked]"}}}'),
        ('{"page": {"token": "abc"}, "token": "abc"}', '{"page": {"token": "abc"}, "token": "[masked]"}'),
        ('{"page": {"token": "529.982.247-25"}}', '{"page": {"token": "[cpf]"}}'),
        ('{"secret": {"hint": "dog", "x": "y"}}', '{"secret": {"hint": "dog", "x": "[masked]"}}'),
        ('{"userNickname": "x", "nicknames": "y"}', '{"userNickname": "[masked]", "nicknames": "y"}'),
        ('{"customer": "{\\"name\\": \\"J\\"}"}', '{"customer": "{\\"name\\": \\"[masked]\\"}"}'),
        ('{"\\u0061": 1}', '{"\\u0061": "[masked]"}'),
        ('{"a": [null, [false, {"b": "x"}]]}', '{"a": [null, ["[masked]", {"b": "[masked]"}]]}'),
        ('{"a": {"token": true}, "token": true}', '{"a": {"token": "[masked]"}, "token": true}'),
        ('{"both": 1}', '{"both": "[masked]"}'),
        ('{"list": [1, 2, 3], "x": [1, 2]}', '{"list": [1, "[masked]", 3], "x": [1, 2]}'),
        ('{"a": "J", "n": NaN, "s": "\\ud800"}', '{"a": "[masked]", "n": NaN, "s": "\\ud800"}'),
        ('\ufeff{"a": "J"}', '\ufeff{"a": "[masked]"}'),
        ('{"customer": {"name": "J"}', NOT_JSON),
        ("customer=J", NOT_JSON),
    ],
)  # fmt: skip
def test_paths_and_names_of_a_team(body: str, shown: str | None) -> None:
    assert masked(body, RULED) == (body if shown is None else shown)


def test_a_path_may_begin_with_data_as_in_filters_and_reaches_metadata() -> None:
    masker = Masker(MaskingRules(hidden=(("data", "name"), ("metadata", "user"))))
    message = Message.create(
        id="m", sent_at=NOON, queue="q", data={"name": "J", "data": {"name": "K"}}, metadata={"user": "U", "x": 1}
    )
    shown = masker.message(message)
    assert shown.data == {"name": "[masked]", "data": {"name": "[masked]"}}
    assert shown.metadata == {"user": "[masked]", "x": 1}


def test_maskers_by_queue() -> None:
    maskers = Maskers(
        MaskingRules(fields=("nickname",)),
        {"pay*": MaskingRules(hidden=(("x",),)), "payments": MaskingRules(enabled=False), "p*": MaskingRules()},
    )
    body = b'{"x": 1, "nickname": "n", "cpf": "1"}'
    assert maskers.for_queue("payments").payload(body) == body
    assert (
        maskers.for_queue("payroll").payload(body)
        == b'{"x": "[masked]", "nickname": "[masked]", "cpf": "[masked]"}'
    )
    assert maskers.for_queue("orders").payload(body) == b'{"x": 1, "nickname": "[masked]", "cpf": "[masked]"}'
    assert maskers.for_queue("orders") is maskers.general


# What is kept of a message that failed


def _message(**fields: Any) -> Message:
    given: dict[str, Any] = {"id": "m-1", "queue": "q", "sent_at": NOON, "body": f'{{"x": "{CPF}"}}'.encode()}
    return Message(**given | fields)


def test_headers_of_every_type() -> None:
    header = MASKER.header
    assert header("x", f"mail {MAIL}") == "mail [e-mail]"
    assert header("x", CPF.encode()) == b"[cpf]"
    assert header("x", 52998224725) == "[cpf]"
    assert header("x", 10**5000) == 10**5000
    assert header("x", [CPF, {"senha": "s", "n": None, MAIL: 1}]) == [
        "[cpf]",
        {"senha": "[masked]", "n": None, "[e-mail]": 1},
    ]
    assert header("authorization", b"abc") == b"[masked]"
    assert header("token", None) is None
    assert header("token", value=True) is True
    assert header("at", NOON) == NOON


def test_a_message_is_masked_in_body_headers_key_and_error() -> None:
    message = _message(headers=(("to", MAIL), ("senha", "s")), key=CPF.encode(), properties=CPF.encode())
    shown = MASKER.message(message.with_error(f"no {MAIL}", "E1", f"at {CPF}"))
    assert shown.body == b'{"x": "[cpf]"}'
    assert shown.headers == (("to", "[e-mail]"), ("senha", "[masked]"))
    assert (shown.key, shown.properties) == (b"[cpf]", None)
    assert shown.error is not None
    assert (shown.error.message, shown.error.code, shown.error.trace) == ("no [e-mail]", "E1", "at [cpf]")


def _failure() -> Failure:
    frame = Frame("shop.py", 7, "charge", f'raise Refused("{CARD}")', own=True)
    chain = (Raised("KeyError", f"'{MAIL}'", ()), Raised("shop.Refused", f"{CARD} refused", (frame,), "cause"))
    return Failure(attempt=1, at=NOON, kind=FailureKind.PERMANENT, handler="charge", chain=chain)


def _line() -> Happening:
    return Happening(at=NOON, by="ana@example.com", what="edit", before=CPF, after="x", reason=f"asked by {MAIL}")


def _letter() -> DeadLetter:
    message = _message()
    return DeadLetter(
        id="l-1", status=Status.PENDING, how=f"by hand for {MAIL}", message=message, queue="q", handler="charge",
        kind="permanent", type="shop.Refused", text=f"{CARD} refused", group_id="g", identity="i", generation=0,
        revision=1, deliveries=1, attempts=1, created_at=NOON, first_attempt_at=NOON, last_attempt_at=NOON,
        changed_at=NOON, lane=f"q {CPF}", failures=(_failure(),), generations=(0,),
        revisions=(Revision(number=0, at=NOON, by="ana", reason=f"for {MAIL}", message=message),),
        history=(_line(),),
    )  # fmt: skip


def test_nothing_planted_survives_in_a_letter_and_what_it_is_known_by_stays() -> None:
    letter = _letter()
    shown = MASKER.letter(letter)
    told = "\n".join((_told(shown), *(each.trace for each in shown.failures)))
    assert [each for each in (CPF, MAIL, CARD) if each in told] == []
    same = ("id", "status", "queue", "handler", "kind", "type", "group_id", "identity", "created_at", "version")
    assert all(getattr(shown, name) == getattr(letter, name) for name in same)
    assert shown.history[0].by == "ana@example.com"
    assert "shop.Refused: [card] refused" in shown.failures[0].trace


def _told(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode() + "".join(
        (each.body or b"").decode()
        for each in (value.message, *(revision.message for revision in value.revisions))
    )


def test_a_group_is_masked() -> None:
    group = FailureGroup(
        id="g", title=f"Refused: {CARD}", queue="q", handler="h", first_seen=NOON, last_seen=NOON, total=1,
        pending=1, example="l-1", owner="ana@example.com", note=f"ask {MAIL}", runbook="https://u:p@wiki/x",
        history=(_line(),),
    )  # fmt: skip
    shown = MASKER.group(group)
    assert (shown.title, shown.note, shown.runbook) == (
        "Refused: [card]",
        "ask [e-mail]",
        "https://[password]@wiki/x",
    )
    assert shown.history[0].reason == "asked by [e-mail]"
    assert (shown.id, shown.owner, shown.example) == ("g", "ana@example.com", "l-1")


def test_what_has_nothing_to_hide_is_the_same() -> None:
    message = _message(body=b' {"price": 1.10, "big": 123456789012345678901234567890, "t": "\\u00e9\\/"} ')
    assert MASKER.message(message) == message
    off = Masker(MaskingRules(enabled=False))
    letter = _letter()
    assert off.letter(letter) is letter
    assert off.message(letter.message) is letter.message
    assert off.failure(letter.failures[0]) is letter.failures[0]
    assert (off.text(CPF), off.header("senha", "s"), off.payload(CPF.encode())) == (CPF, "s", CPF.encode())
