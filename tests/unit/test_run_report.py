"""What is said about a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from redrive.cli.run_page import progress_line, run_record, selection_text
from redrive.letter_query import LetterQuery
from redrive.run import Progress, Run, RunPlan, RunStatus
from redrive.run_report import RunReport, estimated_end, summary, unsent
from redrive.search import parse

MADE = datetime(2026, 1, 1, tzinfo=UTC)


def a_run(*, rate: float | None = None, **fields: Any) -> Run:
    given: dict[str, Any] = {
        "id": "run",
        "status": RunStatus.RUNNING,
        "requested_by": "ann",
        "total": 500,
    } | fields
    plan = RunPlan(selection=LetterQuery(queue="orders"), rate=rate)
    return Run(plan=plan, created_at=MADE, **{"changed_at": MADE} | given)


def after(seconds: float) -> datetime:
    return MADE + timedelta(seconds=seconds)


def test_the_sentence_of_a_report() -> None:
    progress = Progress(taken=500, sent=500, confirmed=479, came_back_same=9, came_back_new=3)
    told = "500 sent, 479 confirmed, 9 came back with the same group, 3 with a new one, 9 without word"
    assert summary(progress) == told


def test_what_went_otherwise_is_told_as_well() -> None:
    progress = Progress(taken=9, sent=4, by_hand=1, refused=2, released=1, in_hand=2, passed_over=5)
    assert summary(progress).endswith(
        "1 decided by hand, 3 without word, 2 refused by the broker, 5 passed over, 1 given back unsent, 2 in hand"
    )


def test_the_end_is_estimated_by_the_speed_so_far() -> None:
    run = a_run(progress=Progress(taken=100, sent=100, last_sent_at=after(10)))
    assert estimated_end(run, after(10)) == after(50)


def test_the_end_is_never_sooner_than_the_rate_allows() -> None:
    run = a_run(rate=2, progress=Progress(taken=100, sent=100, last_sent_at=after(10)))
    assert estimated_end(run, after(10)) == after(210)


def test_before_the_first_one_only_the_rate_is_known() -> None:
    assert estimated_end(a_run(), after(1)) is None
    assert estimated_end(a_run(rate=5), after(0)) == after(100)


def test_what_does_not_run_has_no_estimated_end() -> None:
    assert estimated_end(a_run(rate=5, status=RunStatus.PAUSED), after(0)) is None
    assert estimated_end(a_run(rate=5, exhausted=True), after(0)) is None


def test_the_time_that_a_run_was_paused_does_not_count() -> None:
    told = Progress(taken=100, sent=100, last_sent_at=after(5000))
    assert estimated_end(a_run(rate=4, changed_at=after(4000), progress=told), after(5000)) == after(5100)
    assert estimated_end(a_run(changed_at=after(4000), progress=told), after(5000)) is None


def test_a_speed_beyond_the_calendar_is_no_estimate() -> None:
    assert estimated_end(a_run(rate=1e-10, total=10**6), after(0)) is None


def test_what_is_in_hand_is_still_to_be_sent() -> None:
    run = a_run(rate=5, exhausted=True, progress=Progress(taken=500, in_hand=10, sent=490))
    assert unsent(run) == 10
    assert estimated_end(run, after(0)) == after(2)


def test_the_line_of_the_progress_bar() -> None:
    told = Progress(taken=100, sent=99, confirmed=80, came_back_new=3, refused=1, last_sent_at=after(9.9))
    line = progress_line(a_run(progress=told), after(9.9))
    assert line == "99 sent, 80 confirmed, 3 back, 1 refused, 400 left, 40s to go"


def test_a_selection_is_told_as_a_filter() -> None:
    where = parse("type:TimeoutError -handler:refund", now=MADE)
    assert selection_text(LetterQuery(queue="orders", where=where)) == (
        "queue:orders type:TimeoutError -handler:refund"
    )
    assert selection_text(LetterQuery(ids=("a", "b"))) == "2 named letters"


def test_a_record_holds_every_number() -> None:
    run = a_run(progress=Progress(taken=3, sent=3, confirmed=1))
    record = run_record(RunReport(run=run))
    assert {key: record[key] for key in ("status", "total", "sent", "confirmed", "without_word")} == {
        "status": "RUNNING",
        "total": 500,
        "sent": 3,
        "confirmed": 1,
        "without_word": 2,
    }
