from __future__ import annotations

import json
from typing import Any

import msgspec
import pydantic
import pytest

from redrive import Drop, Permanent, Transient, caused_by
from redrive.classification import Classifier, Kinds
from redrive.failure import FailureKind

TRANSIENT, PERMANENT, CRITICAL = FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.CRITICAL


class Unknown(Exception):
    pass


class PaymentFailed(Exception):
    pass


class CardDeclined(PaymentFailed):
    pass


class Model(pydantic.BaseModel):
    number: int


def raised_by(function: Any) -> Exception:
    try:
        function()
    except Exception as error:  # noqa: BLE001  any of them is wanted
        return error
    raise AssertionError("it should have raised")


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), TRANSIENT),
        (ConnectionError(), TRANSIENT),
        (ConnectionRefusedError(), TRANSIENT),
        (BrokenPipeError(), TRANSIENT),
        (ValueError(), PERMANENT),
        (TypeError(), PERMANENT),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), PERMANENT),
        (raised_by(lambda: json.loads("{")), PERMANENT),
        (raised_by(lambda: msgspec.json.decode(b"{")), PERMANENT),
        (raised_by(lambda: msgspec.json.decode(b"1", type=str)), PERMANENT),
        (raised_by(lambda: Model.model_validate({"number": "x"})), PERMANENT),
        (MemoryError(), CRITICAL),
        (RecursionError(), CRITICAL),
        (Unknown(), TRANSIENT),
        (KeyError("x"), TRANSIENT),
        (RuntimeError(), TRANSIENT),
        (Transient(), TRANSIENT),
        (Permanent(), PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_the_defaults_are_what_a_python_team_expects(error: Exception, kind: FailureKind) -> None:
    assert Classifier().classify(error) is kind


class TestSd9ExceptionsAreMatchedByTypeNotByTheirNamesAsText:
    def test_a_subclass_matches(self) -> None:
        classifier = Classifier({PaymentFailed: PERMANENT})
        assert classifier.classify(CardDeclined()) is PERMANENT

    def test_the_nearest_type_in_the_tree_wins_whatever_the_order(self) -> None:
        kinds: Kinds = {PaymentFailed: PERMANENT, CardDeclined: CRITICAL}
        for each in (kinds, dict(reversed(list(kinds.items())))):
            assert Classifier(each).classify(CardDeclined()) is CRITICAL
            assert Classifier(each).classify(PaymentFailed()) is PERMANENT

    def test_a_type_that_only_shares_the_name_does_not_match(self) -> None:
        alike = type("PaymentFailed", (Exception,), {"__module__": "elsewhere"})
        assert Classifier({PaymentFailed: PERMANENT}).classify(alike()) is TRANSIENT
        assert Classifier({"PaymentFailed": PERMANENT}).classify(alike()) is TRANSIENT

    def test_a_namesake_of_a_default_does_not_match(self) -> None:
        alike = type("ValueError", (Exception,), {"__module__": "elsewhere"})
        assert Classifier().classify(alike()) is TRANSIENT

    def test_a_text_that_names_a_type_does_not_match(self) -> None:
        assert Classifier({ValueError: PERMANENT}).classify(Unknown("ValueError: TimeoutError")) is TRANSIENT

    @pytest.mark.parametrize(
        "pattern", ["stripe.error.RateLimitError", "stripe.error.*", "stripe.*", "*.RateLimitError"]
    )
    def test_types_of_foreign_frameworks_match_by_full_name_or_pattern(self, pattern: str) -> None:
        foreign = type("RateLimitError", (Exception,), {"__module__": "stripe.error"})
        below = type("Below", (foreign,), {"__module__": "ours"})
        classifier = Classifier({pattern: PERMANENT})
        assert classifier.classify(foreign()) is PERMANENT
        assert classifier.classify(below()) is PERMANENT
        assert classifier.classify(Unknown()) is TRANSIENT

    def test_a_builtin_can_be_named(self) -> None:
        assert Classifier({"KeyError": PERMANENT}).classify(KeyError()) is PERMANENT

    def test_of_a_name_and_a_type_the_nearer_in_the_tree_wins(self) -> None:
        classifier = Classifier({PaymentFailed: PERMANENT, f"{__name__}.CardDeclined": CRITICAL})
        assert classifier.classify(CardDeclined()) is CRITICAL


def test_the_handler_beats_the_queue_beats_the_app_beats_the_defaults() -> None:
    handler: Kinds = {KeyError: CRITICAL}
    queue: Kinds = {KeyError: PERMANENT, OSError: PERMANENT}
    app: Kinds = {OSError: CRITICAL}
    classifier = Classifier(handler, queue, app)
    assert classifier.classify(KeyError()) is CRITICAL
    assert classifier.classify(OSError()) is PERMANENT
    assert Classifier({}, {}, {ValueError: TRANSIENT}).classify(ValueError()) is TRANSIENT
    assert classifier.classify(ValueError()) is PERMANENT


def test_a_near_rule_for_a_wide_type_beats_a_far_rule_for_a_narrow_one() -> None:
    assert Classifier({OSError: PERMANENT}, {TimeoutError: CRITICAL}).classify(TimeoutError()) is PERMANENT


def test_a_predicate_decides_by_what_the_exception_says() -> None:
    classifier = Classifier({lambda error: getattr(error, "status", 0) == 404: "permanent"})
    gone, busy = Unknown(), Unknown()
    gone.status, busy.status = 404, 503  # type: ignore[attr-defined]  # as many HTTP clients do
    assert classifier.classify(gone) is PERMANENT
    assert classifier.classify(busy) is TRANSIENT


def test_predicates_come_before_types_and_in_their_order() -> None:
    classifier = Classifier({ValueError: PERMANENT, (lambda _: True): CRITICAL, (lambda _: True): TRANSIENT})
    assert classifier.classify(ValueError()) is CRITICAL


def test_a_predicate_that_fails_itself_does_not_match() -> None:
    classifier = Classifier({lambda error: error.response.status == 404: PERMANENT})  # type: ignore[attr-defined]
    assert classifier.classify(Unknown()) is TRANSIENT
    assert classifier.classify(MemoryError()) is CRITICAL


def test_caused_by_looks_behind_the_exception() -> None:
    classifier = Classifier({caused_by(ConnectionError, TimeoutError): TRANSIENT, PaymentFailed: PERMANENT})
    assert classifier.classify(PaymentFailed()) is PERMANENT
    assert classifier.classify(caused(PaymentFailed(), ConnectionResetError())) is TRANSIENT
    assert classifier.classify(caused(PaymentFailed(), caused(Unknown(), TimeoutError()))) is TRANSIENT
    during = PaymentFailed()
    during.__context__ = TimeoutError()
    assert classifier.classify(during) is TRANSIENT


def test_caused_by_does_not_look_at_the_exception_itself() -> None:
    classifier = Classifier({caused_by(OSError): CRITICAL})
    assert classifier.classify(OSError()) is TRANSIENT


class Empty(Exception):
    def __len__(self) -> int:
        return 0


def test_caused_by_sees_causes_that_count_as_false_and_ends_on_circles() -> None:
    matches = caused_by(TimeoutError)
    assert matches(caused(Unknown(), caused(Empty(), TimeoutError())))
    one, two = Unknown(), Unknown()
    one.__cause__, two.__cause__ = two, one
    assert not matches(one)


class Fraud(Permanent):
    pass


def test_what_a_handler_says_itself_outweighs_a_rule_for_every_exception() -> None:
    for everything in (Exception, BaseException, "*"):
        assert Classifier({everything: TRANSIENT}).classify(Permanent()) is PERMANENT
        assert Classifier({everything: PERMANENT}).classify(Transient()) is TRANSIENT
        assert Classifier({everything: CRITICAL}).classify(Unknown()) is CRITICAL


def test_a_rule_for_a_signal_of_ones_own_counts() -> None:
    assert Classifier({Fraud: CRITICAL}).classify(Fraud()) is CRITICAL
    assert Classifier({Exception: TRANSIENT}, {Fraud: CRITICAL}).classify(Fraud()) is CRITICAL
    assert Classifier().classify(Fraud()) is PERMANENT
    assert Classifier({Permanent: CRITICAL}).classify(Fraud()) is CRITICAL
    assert Classifier({Exception: PERMANENT}).classify(Drop()) is TRANSIENT


def test_a_group_is_as_bad_as_its_worst_member() -> None:
    classify = Classifier({PaymentFailed: PERMANENT}).classify
    assert classify(ExceptionGroup("g", [TimeoutError(), ConnectionError()])) is TRANSIENT
    assert classify(ExceptionGroup("g", [TimeoutError(), ValueError()])) is PERMANENT
    assert classify(ExceptionGroup("g", [ValueError(), MemoryError()])) is CRITICAL
    assert classify(ExceptionGroup("g", [ExceptionGroup("inner", [CardDeclined()])])) is PERMANENT


def test_the_members_of_a_group_outweigh_a_rule_for_every_exception() -> None:
    classifier = Classifier({Exception: PERMANENT, ConnectionError: TRANSIENT})
    assert classifier.classify(ExceptionGroup("g", [ConnectionError()])) is TRANSIENT
    assert classifier.classify(ExceptionGroup("g", [ConnectionError(), Unknown()])) is PERMANENT


def test_a_rule_for_groups_counts_for_groups() -> None:
    assert Classifier({ExceptionGroup: CRITICAL}).classify(ExceptionGroup("g", [TimeoutError()])) is CRITICAL


@pytest.mark.parametrize(
    "wrong", [int, 17, None, object()], ids=["a type that is no exception", "17", "None", "x"]
)
def test_what_cannot_match_an_exception_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="cannot match an exception"):
        Classifier({wrong: PERMANENT})


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="fatal"):
        Classifier({ValueError: "fatal"})
