from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.binding import Undecodable, bind, payload_type
from redrive.classification import Classifier
from redrive.errors import ConfigurationError
from redrive.failure import FailureKind, Host, capture
from redrive.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal as OnlyForTheTypeChecker

NOW = datetime(2026, 2, 28, tzinfo=UTC)
BODY = b'{"number": 17, "name": "Ana"}'


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class OrderData:
    number: int
    name: str = ""
    colour: Colour = Colour.RED


class OrderModel(pydantic.BaseModel):
    number: int
    name: str = ""


class OrderStruct(msgspec.Struct):
    number: int
    name: str = ""
    kind: Literal["new", "old"] = "new"


class OrderDict(TypedDict):
    number: int
    name: str


class Plain:
    def __init__(self, number: int) -> None:
        self.number = number


def foreign(body: bytes | None) -> Message:
    return Message(id="x", queue="orders", body=body, sent_at=NOW)


def ours(data: Any) -> Message:
    return Message.create(id="x", sent_at=NOW, queue="orders", data=data)


def asking(annotation: Any) -> Callable[..., Any]:
    def handler(order: Any) -> None: ...

    handler.__annotations__ = {"order": annotation}
    return handler


def given_to(annotation: Any, message: Message) -> Any:
    (argument,) = bind(asking(annotation))(message, None)
    return argument


@pytest.mark.parametrize("message", [foreign(BODY), ours({"number": 17, "name": "Ana"})], ids=["foreign", "ours"])
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (OrderData, OrderData(17, "Ana")),
        (OrderModel, OrderModel(number=17, name="Ana")),
        (OrderStruct, OrderStruct(17, "Ana")),
        (OrderDict, {"number": 17, "name": "Ana"}),
        (dict, {"number": 17, "name": "Ana"}),
        (dict[str, Any], {"number": 17, "name": "Ana"}),
        (dict[str, int | str], {"number": 17, "name": "Ana"}),
        (Any, {"number": 17, "name": "Ana"}),
        (object, {"number": 17, "name": "Ana"}),
        (OrderData | None, OrderData(17, "Ana")),
        (Annotated[OrderStruct, "a remark"], OrderStruct(17, "Ana")),
    ],
    ids=str,
)
def test_a_handler_receives_what_its_annotation_asks_for(message: Message, annotation: Any, expected: Any) -> None:
    got = given_to(annotation, message)
    assert got == expected
    assert type(got) is type(expected)


def test_bytes_are_the_payload_as_it_is() -> None:
    assert given_to(bytes, foreign(b"\xff\x00")) == b"\xff\x00"
    assert given_to(bytes, foreign(b"")) == b""
    assert given_to(bytes, ours({"a": 1})) == b'{"a":1}'
    assert given_to(Annotated[bytes, "a remark"], foreign(b"x")) == b"x"


def test_bytes_or_none_tell_nothing_from_empty() -> None:
    assert given_to(bytes | None, foreign(None)) is None
    assert given_to(bytes | None, foreign(b"")) == b""


def test_text_is_the_payload_as_text_and_a_text_that_was_sent_comes_out_without_quotes() -> None:
    assert given_to(str, foreign("olá".encode())) == "olá"
    assert given_to(str, foreign(b'"as it is"')) == '"as it is"'
    assert given_to(str, ours('a "text"\n')) == 'a "text"\n'
    assert given_to(str, ours({"a": 1})) == '{"a":1}'


def no_annotation(order):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  the case
    return order


def test_without_an_annotation_it_is_json() -> None:
    assert bind(no_annotation)(foreign(b"[1, 2]"), None) == ([1, 2],)
    assert bind(lambda order: order)(foreign(b"null"), None) == (None,)


def both(order: OrderData, message: Message) -> None: ...


def both_turned(message: Message, order: OrderData) -> None: ...


def only_the_message(message: Message) -> None: ...


def nothing() -> None: ...


def test_the_message_itself_alone_or_beside_the_payload_in_any_order() -> None:
    message = foreign(BODY)
    order = OrderData(17, "Ana")
    assert bind(both)(message, None) == (order, message)
    assert bind(both_turned)(message, None) == (message, order)
    assert bind(only_the_message)(foreign(b"\xff"), None) == (foreign(b"\xff"),)
    assert bind(nothing)(message, None) == ()


class Transaction:
    pass


def in_a_transaction(tx: Transaction, order: OrderData, message: Message) -> None: ...


def test_the_inboxs_transaction_goes_where_its_type_is() -> None:
    transaction = Transaction()
    arguments = bind(in_a_transaction, transaction=Transaction)(foreign(BODY), transaction)
    assert arguments == (transaction, OrderData(17, "Ana"), foreign(BODY))
    assert payload_type(in_a_transaction, transaction=Transaction) == "OrderData"


class Processor:
    factor: int = 3

    def process(self, order: OrderData) -> None: ...

    @classmethod
    def of_the_class(cls, order: OrderData) -> None: ...

    @staticmethod
    def of_nobody(order: OrderData) -> None: ...

    async def __call__(self, order: OrderData) -> None: ...


def with_a_dependency(database: str, order: OrderData, *, dry: bool) -> None: ...


def decorated_well(order: OrderData) -> None: ...


@functools.wraps(decorated_well)
def around_it(*args: Any, **kwargs: Any) -> None:
    decorated_well(*args, **kwargs)


@pytest.mark.parametrize(
    "handler",
    [
        Processor().process,
        Processor.of_the_class,
        Processor.of_nobody,
        Processor(),
        functools.partial(with_a_dependency, "db", dry=True),
        functools.partial(functools.partial(with_a_dependency, dry=True), "db"),
        around_it,
    ],
    ids=["method", "class method", "static method", "callable object", "partial", "partial twice", "decorated"],
)
def test_whatever_can_be_called_is_bound_by_the_annotations_behind_it(handler: Callable[..., Any]) -> None:
    assert bind(handler)(foreign(BODY), None) == (OrderData(17, "Ana"),)
    assert payload_type(handler) == "OrderData"


def with_defaults(order: OrderData, message: Message, retries: int = 3, *, dry: bool = False) -> None: ...


def message_with_default(message: Message, dry_run: bool = False) -> None: ...  # noqa: FBT001, FBT002  the case


def only_with_default(order: OrderData = OrderData(0)) -> None: ...  # noqa: B008  the case


def test_parameters_with_a_default_keep_it_unless_there_is_no_other() -> None:
    message = foreign(BODY)
    assert bind(with_defaults)(message, None) == (OrderData(17, "Ana"), message)
    assert bind(message_with_default)(message, None) == (message,)
    assert bind(only_with_default)(message, None) == (OrderData(17, "Ana"),)


def test_types_made_of_pydantic_models_are_pydantics() -> None:
    assert given_to(list[OrderModel], foreign(b'[{"number": "1"}]')) == [OrderModel(number=1)]
    assert given_to(OrderModel | None, foreign(b"null")) is None


@pydantic.dataclasses.dataclass
class Checked:
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def positive(cls, number: int) -> int:
        if number < 0:
            raise ValueError(f"{number} is negative")
        return number


@pytest.mark.parametrize("annotation", [Checked, list[Checked]], ids=["itself", "in a list"])
def test_the_validators_of_a_pydantic_dataclass_run(annotation: Any) -> None:
    body = b'{"number": -4321}' if annotation is Checked else b'[{"number": -4321}]'
    with pytest.raises(Undecodable) as failed:
        given_to(annotation, foreign(body))
    assert "4321" not in str(failed.value)


def test_constraints_beside_a_type_are_checked() -> None:
    with pytest.raises(Undecodable, match=">= 6"):
        given_to(Annotated[int, msgspec.Meta(gt=5)], foreign(b"3"))
    with pytest.raises(Undecodable, match="Expected `int`"):
        given_to(dict[str, int], foreign(b'{"a": "x"}'))


class Sales(pydantic.BaseModel):
    kind: Literal["sale"]


class Refunds(pydantic.BaseModel):
    kind: Literal["refund"]


class Tagged(pydantic.BaseModel):
    what: Annotated[Sales | Refunds, pydantic.Field(discriminator="kind")]


class Strict(pydantic.BaseModel):
    name: str

    @pydantic.field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        raise ValueError(f"nobody is called {name}")


class TaggedA(msgspec.Struct, tag="a"):
    number: int


class TaggedB(msgspec.Struct, tag="b"):
    number: int


class Limited(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(max_length=3, pattern="^x")]


CANARIES = [
    (OrderData, b'{"number": "CANARY"}'),
    (OrderData, b'{"number": 1, "colour": "CANARY"}'),
    (OrderData, b'{"number": 1, "colour": "it\'s - at `CANARY`"}'),
    (OrderStruct, b'{"number": 1, "kind": "CANARY"}'),
    (Literal["a", "b"], b'"CANARY"'),
    (Literal["a", "b"], b'"x - at `CANARY"'),
    (TaggedA | TaggedB, b'{"type": "CANARY"}'),
    (Limited, b'{"name": "CANARY"}'),
    (OrderDict, b'{"number": "CANARY", "name": ""}'),
    (list[Colour], b'["red", "CANARY"]'),
    (datetime, b'"CANARY"'),
    (OrderModel, b'{"number": "CANARY"}'),
    (OrderModel, b'{"number": CANARY}'),
    (OrderModel, b'["CANARY"]'),
    (Tagged, b'{"what": {"kind": "CANARY"}}'),
    (Strict, b'{"name": "CANARY"}'),
    (list[OrderModel], b'[{"number": "CANARY"}]'),
    (dict, b'{"a": CANARY}'),
    (dict, b'"CANARY"'),
    (Any, b"CANARY"),
    (str, b"CANARY \xff"),
    (bytes, None),
]


@pytest.mark.parametrize(("annotation", "body"), CANARIES, ids=lambda value: str(value)[:40])
def test_what_does_not_decode_is_permanent_and_its_text_does_not_repeat_the_payload(
    annotation: Any, body: bytes | None
) -> None:
    with pytest.raises(Undecodable) as failed:
        given_to(annotation, foreign(body))
    assert Classifier().classify(failed.value) is FailureKind.PERMANENT
    assert str(failed.value)
    failure = capture(failed.value, attempt=1, at=NOW, kind=FailureKind.PERMANENT, handler="charge", host=Host())
    for told in (str(failed.value), repr(failed.value), failure.trace):
        assert "CANARY" not in told


def test_an_integer_that_is_none_of_the_known_ones_is_not_repeated() -> None:
    with pytest.raises(Undecodable, match=r"^Invalid enum value$"):
        given_to(Literal[1, 2], foreign(b"4321"))


def test_the_text_says_where_the_payload_is_wrong() -> None:
    with pytest.raises(Undecodable, match=r"\$\.colour"):
        given_to(OrderData, foreign(b'{"number": 1, "colour": "blue"}'))
    with pytest.raises(
        Undecodable, match="validation errors for OrderModel: number: Input should be a valid integer"
    ):
        given_to(OrderModel, foreign(b'{"number": "x"}'))
    with pytest.raises(Undecodable, match="name: value_error"):
        given_to(Strict, foreign(b'{"name": "Ana"}'))


def test_the_text_about_a_thousand_errors_is_bounded() -> None:
    with pytest.raises(Undecodable, match=r"^1000 validation errors") as failed:
        given_to(list[OrderModel], foreign(b"[" + b",".join([b"{}"] * 1000) + b"]"))
    assert len(str(failed.value)) < 1000


DEEP = b"[" * 20_000 + b"]" * 20_000


@pytest.mark.parametrize(
    "annotation", [OrderData, OrderModel, OrderStruct, OrderDict, dict, Any, list, int, str | None]
)
@pytest.mark.parametrize("body", [None, b"", b"\xff\xfe", b"\x00", b"{", b"9" * 5000 + b"]", DEEP], ids=ascii)
def test_bytes_that_are_no_payload_are_undecodable_and_nothing_else(annotation: Any, body: bytes | None) -> None:
    with pytest.raises(Undecodable):
        given_to(annotation, foreign(body))


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_are_undecodable(body: bytes) -> None:
    for annotation in (OrderData, OrderModel, OrderStruct, dict, Any, str, list[OrderModel]):
        try:
            given_to(annotation, foreign(body))
        except Undecodable:
            continue


def two_payloads(order: OrderData, other: dict[str, Any]) -> None: ...


def keyword_only(*, order: OrderData) -> None: ...


def unreadable(order: OnlyForTheTypeChecker) -> None: ...


def any_arguments(*args: Any, **kwargs: Any) -> None: ...


def generator(order: OrderData) -> Iterable[int]:
    yield order.number


async def async_generator(order: OrderData) -> Any:
    yield order.number


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (two_payloads, "more than once"),
        (keyword_only, "keyword-only"),
        (unreadable, "annotations of unreadable cannot be read"),
        (any_arguments, "would be given no payload"),
        (asking(Plain), "nothing says how Plain is made"),
        (asking(list[Plain]), "nothing says how Plain is made"),
        (asking(Plain | OrderModel), "cannot be decoded"),
        (asking(OrderModel | OrderData), "cannot be decoded"),
        (asking(Iterable[int]), "cannot be decoded"),
        (asking(OrderData | OrderStruct), "cannot be decoded"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (print, "would be given no payload"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_signature_that_cannot_be_served_is_refused_at_once_with_a_remedy(handler: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        bind(handler)
    assert refused.value.remedy


class Node(msgspec.Struct):
    number: int
    children: list[Node] = []


def test_a_type_that_contains_itself_is_served() -> None:
    assert given_to(Node, foreign(b'{"number": 1, "children": [{"number": 2}]}')) == Node(1, [Node(2)])


@pytest.mark.parametrize(
    ("handler", "name"),
    [
        (both, "OrderData"),
        (both_turned, "OrderData"),
        (only_the_message, "Message"),
        (nothing, "Message"),
        (asking(list[OrderData]), "list"),
        (asking(OrderData | None), "test_binding.OrderData | None"),
    ],
)
def test_s2_the_payloads_type_has_a_name_for_people(handler: Any, name: str) -> None:
    assert payload_type(handler).endswith(name)
