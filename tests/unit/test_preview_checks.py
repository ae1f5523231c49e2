"""Each check of a preview says ok, warn or stop, and what to do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from redrive.letter_query import Count
from redrive.preview import Check, Detour, Endings, Expired, Level, Overview, Target, Targets
from redrive.preview_checks import BACKLOG, judge

FINE = Targets(queues=(Target(name="orders", exists=True, consumers=2, waiting=5),))


def an_overview(**given: object) -> Overview:
    usual: dict[str, object] = {"count": 100, "exact": True, "looked_at": 100, "keys_of": 100}
    return Overview(**(usual | given))  # type: ignore[arg-type]  # Overview's own


def check(name: str, overview: Overview | None = None, targets: Targets = FINE, **given: object) -> Check:
    found = judge(overview or an_overview(), targets, **given)  # type: ignore[arg-type]  # judge's own
    return next(each for each in found if each.name == name)


def queue(**given: object) -> Targets:
    told: dict[str, object] = {"exists": True, "consumers": 1, "waiting": 0}
    return Targets(queues=(Target(name="orders", **(told | given)),))  # type: ignore[arg-type]  # Target's own


def test_a_run_without_a_danger_is_ok_in_everything() -> None:
    found = judge(an_overview(), FINE)

    assert {each.level for each in found} == {Level.OK}
    assert len({each.name for each in found}) == len(found) == 10


MAIL = Detour(name="events/Subscriptions/mail", place="events.mail_retry")


@pytest.mark.parametrize(
    ("detour", "handler", "level", "words"),
    [
        (MAIL, "charge", Level.OK, "goes to 'events.mail_retry'"),
        (MAIL, "unknown", Level.WARN, "--original-topic"),
        (replace(MAIL, place="events", readers=("mail",)), "unknown", Level.OK, "goes to topic 'events'"),
        (replace(MAIL, readers=("audit", "mail"), impossible="no queue"), "unknown", Level.STOP, "no queue"),
        (replace(MAIL, impossible="no queue"), "unknown", Level.STOP, "--original-topic"),
    ],
)
def test_where_letters_for_a_subscription_land_is_told(
    detour: Detour, handler: str, level: Level, words: str
) -> None:
    overview = an_overview(sample=(SimpleNamespace(handler=handler),))
    told = check("subscription", overview, targets=replace(FINE, detours=(detour,)))
    assert told.level is level
    assert words in told.text


def test_who_gets_what_goes_to_a_topic_are_called_what_they_are() -> None:
    targets = Targets(readers=("audit", "mail"), readers_are="subscription")
    found = judge(an_overview(), targets, to_origin=True)
    assert any("which 2 subscriptions read: audit, mail" in each.text for each in found)


@pytest.mark.parametrize(
    ("count", "exact", "level", "words"),
    [
        (1, True, Level.OK, "1 letter will"),
        (2000, False, Level.OK, "at least 2,000 letters"),
        (0, True, Level.STOP, "no PENDING letter matches"),
        (0, False, Level.WARN, "does not say that there is none"),
    ],
)
def test_a_selection_without_letters_stops(*, count: int, exact: bool, level: Level, words: str) -> None:
    told = check("letters", an_overview(count=count, exact=exact))

    assert told.level is level
    assert words in told.text


@pytest.mark.parametrize(
    ("exists", "level", "words"),
    [(True, Level.OK, "is there"), (None, Level.OK, "does not tell"), (False, Level.STOP, "no queue 'orders'")],
)
def test_a_target_has_to_exist(*, exists: bool | None, level: Level, words: str) -> None:
    told = check("target", targets=queue(exists=exists))

    assert told.level is level
    assert words in told.text


def test_one_missing_target_of_many_stops_and_is_named() -> None:
    many = tuple(Target(name=f"q{number}", exists=number != 3) for number in range(9))

    told = check("target", targets=Targets(queues=many))

    assert told.level is Level.STOP
    assert "'q3'" in told.text
    assert "'q4'" not in told.text


def test_a_broker_that_is_away_is_a_warning_with_its_reason() -> None:
    told = check("target", targets=Targets(unknown="nobody listens on port 5672"))

    assert told.level is Level.WARN
    assert "port 5672" in told.text


def test_where_a_producers_exchange_leads_is_not_known() -> None:
    found = judge(an_overview(), Targets(), to_origin=True)

    assert [each.level for each in found if each.name == "target"] == [Level.WARN]
    assert not {"consumers", "backlog"} & {each.name for each in found}


@pytest.mark.parametrize("readers", [("audit", "billing"), ("billing",), ()], ids=["two", "one", "none"])
def test_who_reads_the_topic_that_a_producer_wrote_to_is_named(readers: tuple[str, ...]) -> None:
    [told] = [
        each for each in judge(an_overview(), Targets(readers=readers), to_origin=True) if each.name == "target"
    ]

    assert told.level is Level.WARN
    assert all(each in told.text for each in readers)
    assert ("no consumer group" in told.text) == (not readers)


@pytest.mark.parametrize(("number", "level"), [(0, Level.WARN), (1, Level.OK), (None, Level.OK)])
def test_a_target_without_a_consumer_is_a_warning(number: int | None, level: Level) -> None:
    assert check("consumers", targets=queue(consumers=number)).level is level


@pytest.mark.parametrize(
    ("waiting", "limit", "level"),
    [
        (BACKLOG, None, Level.OK),
        (BACKLOG + 1, None, Level.WARN),
        (11, 10, Level.WARN),
        (10, 10, Level.OK),
        (1, 0, Level.WARN),
        (None, 10, Level.OK),
    ],
)
def test_a_backlog_above_the_limit_is_a_warning(waiting: int | None, limit: int | None, level: Level) -> None:
    assert check("backlog", targets=queue(waiting=waiting), backlog=limit).level is level


@pytest.mark.parametrize(
    ("endings", "level", "words"),
    [
        (Endings(confirmed=98, came_back=2, without_word=7), Level.OK, "98 % came through"),
        (Endings(confirmed=999, came_back=1), Level.OK, "99 % came through"),
        (Endings(confirmed=5, came_back=5), Level.OK, "50 % came through"),
        (Endings(confirmed=4, came_back=5), Level.WARN, "44 % came through"),
        (Endings(came_back=3), Level.WARN, "0 % came through"),
        (Endings(without_word=3), Level.OK, "3 without word"),
        (Endings(), Level.OK, "none of them was sent before"),
    ],
)
def test_how_it_ended_last_time_is_told(endings: Endings, level: Level, words: str) -> None:
    told = check("earlier redrives", an_overview(earlier=endings))

    assert told.level is level
    assert words in told.text


@pytest.mark.parametrize(("redriven", "level"), [(50, Level.OK), (51, Level.WARN)])
def test_letters_most_of_which_were_sent_before_are_a_warning(redriven: int, level: Level) -> None:
    told = check("earlier redrives", an_overview(redriven=redriven, own=Endings(came_back=redriven)))

    assert told.level is level
    assert f"{redriven} of them were sent before ({redriven} came back)" in told.text


def test_what_was_seen_of_some_letters_is_not_said_of_all() -> None:
    some = an_overview(count=5000, redriven=1, last_chance=1, keyed=1)

    for name in ("earlier redrives", "generations", "order"):
        assert "the oldest 100" in check(name, some).text


@pytest.mark.parametrize(("number", "level"), [(0, Level.OK), (1, Level.WARN)])
def test_letters_at_their_last_try_are_a_warning(number: int, level: Level) -> None:
    assert check("generations", an_overview(last_chance=number)).level is level


@pytest.mark.parametrize(("number", "level"), [(0, Level.OK), (3, Level.WARN)])
def test_letters_past_their_expiry_are_a_warning(number: int, level: Level) -> None:
    old = Expired(queue="orders", after=172_800.0, letters=Count(number, exact=True))

    told = check("expiry", expired=[old])

    assert told.level is level
    assert ("3 letters of 'orders' older than 2d" in told.text) is bool(number)


def test_four_queues_past_their_expiry_name_the_worst() -> None:
    old = [Expired(queue=f"q{number}", after=60.0, letters=Count(number, exact=False)) for number in range(1, 5)]

    told = check("expiry", expired=old)

    assert "at least 4 letters of 'q4'" in told.text
    assert "'q1'" not in told.text


@pytest.mark.parametrize(("number", "level"), [(0, Level.OK), (1, Level.WARN)])
def test_quarantined_letters_that_match_are_a_warning(number: int, level: Level) -> None:
    assert check("quarantined", an_overview(quarantined=Count(number, exact=True))).level is level


def test_letters_whose_order_is_kept_are_no_warning() -> None:
    told = check("order", an_overview(ordered=7))

    assert (told.level, told.text) == (
        Level.OK,
        "7 of them are sent in their order, with what is parked behind them",
    )
    assert check("order", an_overview(ordered=7, keyed=1)).level is Level.WARN


@pytest.mark.parametrize(
    ("keyed", "same", "level", "words"),
    [
        (0, 0, Level.OK, "none of them has a key"),
        (3, 0, Level.WARN, "order is not kept"),
        (3, 2, Level.WARN, "2 the same as another"),
    ],
)
def test_keys_are_a_warning_about_order(keyed: int, same: int, level: Level, words: str) -> None:
    told = check("order", an_overview(keyed=keyed, same_key=same))

    assert told.level is level
    assert words in told.text


@pytest.mark.parametrize(
    ("edited", "words"), [(0, "none of them was edited"), (3, "3 of them were edited before")]
)
def test_letters_that_go_back_edited_are_told(edited: int, words: str) -> None:
    told = check("edits", an_overview(edited=edited))

    assert told.level is Level.OK
    assert words in told.text
