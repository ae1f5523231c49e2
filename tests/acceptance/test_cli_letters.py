"""Looking at dead letters: `list`, `show`, `groups`, `stats`, `check`."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.statistics import HandlerTally
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\n\u202efake \x9b31m"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def listed(desk: Desk, *filters: str) -> list[str]:
    ended = desk.redrive("list", "--output", "jsonl", *filters)
    return [json.loads(line)["id"] for line in ended.out.splitlines()]


# list


def test_the_newest_letter_comes_first_in_one_line_that_says_what_and_when(desk: Desk) -> None:
    desk.record(dead(error=TimeoutError("no answer"), attempts=5, age=timedelta(days=3, hours=4)))
    desk.record(dead(queue="mail", age=timedelta(days=1, hours=2)))

    header, newest, oldest = desk.redrive("list").out.splitlines()

    assert header.split() == ["ID", "STATUS", "QUEUE", "ERROR", "ATTEMPTS", "AGE"]
    assert newest.split()[1:] == ["PENDING", "mail", "ValueError:", "no", "such", "customer", "2", "1d2h"]
    assert oldest.split()[1:] == ["PENDING", "orders", "TimeoutError:", "no", "answer", "5", "3d4h"]


def test_every_filter_must_match(desk: Desk) -> None:
    old, mail, timeout = desk.record(
        dead(age=timedelta(days=2)),
        dead(queue="mail", handler="send_mail", age=timedelta(hours=1)),
        dead(error=TimeoutError("no answer"), age=timedelta(hours=1)),
    )
    desk.redrive("discard", timeout, "--reason", "test", "--yes")
    group = desk.letter(mail).group_id

    assert listed(desk, "--queue", "mail") == [mail]
    assert listed(desk, "--handler", "send_mail") == [mail]
    assert listed(desk, "--status", "discarded") == [timeout]
    assert listed(desk, "--type", "TimeoutError") == [timeout]
    assert listed(desk, "--group", group[:12]) == [mail]
    assert listed(desk, "--older-than", "1d") == [old]
    assert listed(desk, "--newer-than", "1d") == [timeout, mail]
    assert listed(desk, "--queue", "mail", "--type", "TimeoutError") == []


def test_nothing_that_matches_is_told_apart_from_nothing_at_all(desk: Desk) -> None:
    empty = desk.redrive("list")
    desk.record(dead())
    unmatched = desk.redrive("list", "--queue", "nosuch")

    assert (empty.code, empty.out, empty.err) == (0, "", "No dead letters match.\n")
    assert (unmatched.code, unmatched.err) == (3, "No dead letters match.\n")
    assert desk.redrive("list", "--queue", "nosuch", "--output", "json").out == "[]\n"


def test_pages_follow_each_other_without_gap_or_overlap(desk: Desk) -> None:
    ids = desk.record(*(dead() for _ in range(5)))

    first = desk.redrive("list", "--limit", "2", "--output", "jsonl")
    second = listed(desk, "--limit", "2", "--after", json.loads(first.out.splitlines()[-1])["id"])
    third = listed(desk, "--after", second[-1])

    assert first.err.startswith("There may be more: add --after ")
    assert [json.loads(line)["id"] for line in first.out.splitlines()] + second + third == ids[::-1]


def test_a_short_id_that_list_shows_is_understood_by_every_command(desk: Desk) -> None:
    ids = desk.record(*(dead() for _ in range(10)))

    lines = desk.redrive("list").out.splitlines()[1:]

    short = [line.split()[0] for line in lines]
    assert len(set(short)) == 10
    for letter_id, shown in zip(reversed(ids), short, strict=True):
        assert desk.redrive("show", shown).out.startswith(f"Letter {letter_id}  PENDING")


def test_an_id_that_is_too_short_ambiguous_or_unknown_is_told_with_the_remedy(desk: Desk) -> None:
    first, _ = desk.record(dead(), dead())

    short = desk.redrive("show", first[:7])
    ambiguous = desk.redrive("show", first[:8])
    unknown = desk.redrive("show", "00000000")

    assert (short.code, "at least 8 characters" in short.err) == (2, True)
    assert (ambiguous.code, "give more of the id" in ambiguous.err) == (2, True)
    assert (unknown.code, unknown.err) == (3, "error: no letter 00000000\n  hint: `redrive list` shows the ids\n")


def test_an_age_beyond_all_time_is_older_than_every_letter(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    assert listed(desk, "--newer-than", "99999999w") == [letter_id]
    assert listed(desk, "--older-than", "99999999w") == []
    assert desk.redrive("stats", "--older-than", "99999999w").code == 0


@pytest.mark.parametrize("given", ["yesterday", "-1d", ""])
def test_an_age_that_is_none_is_a_usage_error_that_names_the_option(desk: Desk, given: str) -> None:
    ended = desk.redrive("list", "--older-than", given)

    assert ended.code == 2
    assert ended.err.startswith("error: --older-than: ")


def test_csv_has_one_line_per_letter_and_no_formula(desk: Desk) -> None:
    desk.record(dead(error=ValueError('=HYPERLINK("http://evil")')), dead(queue="@mail"))

    rows = list(csv.DictReader(desk.redrive("list", "--output", "csv").out.splitlines()))

    assert [row["queue"] for row in rows] == ["'@mail", "orders"]
    assert rows[1]["text"] == '\'=HYPERLINK("http://evil")'


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_hostile_text_cannot_reach_the_terminal(desk: Desk, output: str) -> None:
    """TH2: in the error, the queue, the handler, the headers and the body."""
    message = foreign(HOSTILE.encode(), queue="orders", headers=((HOSTILE, HOSTILE),))
    [letter_id] = desk.record(dead(message, queue=HOSTILE, handler=HOSTILE, error=ValueError(HOSTILE)))

    for command in (("list",), ("show", letter_id), ("groups",), ("stats",)):
        written = desk.redrive(*command, "--output", output).out
        assert not {"\x1b", "\x07", "\r", "\u202e", "\x9b"} & set(written)
        assert "owned" in written


def test_on_a_narrow_terminal_a_letter_is_still_one_line(desk: Desk) -> None:
    desk.record(dead(error=ValueError("x" * 500 + HOSTILE)))

    seen = on_terminal(desk.folder, "list", columns=80, NO_COLOR="1")

    assert len(seen.text.splitlines()) == 3  # with the titles above, and how many there are below
    assert "\x1b" not in seen.text


# show


def test_a_letter_is_shown_with_payload_headers_every_attempt_and_its_history(desk: Desk) -> None:
    message = an_order(12345678901234567890123456789, headers=(("trace", "abc"), ("raw", b"\xff")))
    [letter_id] = desk.record(dead(message, attempts=3))
    desk.redrive("discard", letter_id, "--reason", "customer is gone", "--yes")

    shown = desk.redrive("show", letter_id, "--reveal", "to look").out

    assert shown.startswith(f"Letter {letter_id}  DISCARDED (by hand)\n")
    assert '    "order_id": 12345678901234567890123456789\n' in shown
    assert '  trace: abc\n  raw: {"base64": "/w=="}\n' in shown
    for attempt in (1, 2, 3):
        assert f"\nAttempt {attempt}, " in shown
        assert f"KeyError: 'customer' (attempt {attempt})" in shown
    assert "on worker-1, process 4711, shop 1.2.3, test" in shown
    assert "PENDING -> DISCARDED" in shown
    assert shown.rstrip().endswith(": customer is gone")


def test_s0_the_stack_traces_of_all_attempts_are_kept(desk: Desk) -> None:
    """S0, test 7: "Testar Stack Traces na DLQ"."""
    [letter_id] = desk.record(dead(error=RuntimeError("Erro específico: msg5"), attempts=2))

    told = json.loads(desk.redrive("show", letter_id, "--output", "json").out)

    assert len(told["failures"]) == 2
    assert all("RuntimeError: Erro específico: msg5" in failure["trace"] for failure in told["failures"])


def test_s2_everything_of_failed_message_info_is_in_the_json(desk: Desk) -> None:
    """S2's FailedMessageInfo, FailureAttempt and EnvironmentMetadata."""
    message = an_order(7)
    [letter_id] = desk.record(dead(message, attempts=2))

    told = json.loads(desk.redrive("show", letter_id, "--output", "json").out)

    assert told["message"]["id"] == message.id
    assert told["message"]["body"].encode() == message.body
    assert (told["queue"], told["handler"], told["attempts"]) == ("orders", "charge", 2)
    assert told["first_attempt_at"] <= told["last_attempt_at"]
    assert (told["type"], told["text"]) == ("ValueError", "no such customer")
    assert [failure["attempt"] for failure in told["failures"]] == [1, 2]
    assert told["failures"][0]["host"] == {
        "name": "worker-1",
        "process": 4711,
        "app": "shop",
        "app_version": "1.2.3",
        "environment": "test",
    }


@pytest.mark.parametrize("body", [b"\x00\xff\x1b[2J", b"", b'{"a": 1.10}\r\n', b"[" * 3000])
def test_the_payloads_exact_bytes_can_be_had(desk: Desk, body: bytes) -> None:
    [letter_id] = desk.record(dead(foreign(body)))

    assert desk.redrive("show", letter_id, "--payload", "--reveal", "to look").raw == body
    assert desk.redrive("show", letter_id, "--body", "--reveal", "to look").raw == body


def test_of_an_envelope_the_payload_is_its_data_and_the_body_is_all_of_it(desk: Desk) -> None:
    message = an_order(7)
    [letter_id] = desk.record(dead(message))

    assert desk.redrive("show", letter_id, "--payload").raw == b'{"order_id":7}'
    assert desk.redrive("show", letter_id, "--body").raw == message.body
    assert desk.redrive("show", letter_id, "--payload", "--body").code == 2


def test_a_message_without_a_body_says_so(desk: Desk) -> None:
    [letter_id] = desk.record(dead(foreign(None)))

    assert "(no body)" in desk.redrive("show", letter_id).out
    written = desk.redrive("show", letter_id, "--payload")
    assert (written.code, written.raw, written.err) == (0, b"", "The message has no body.\n")


# groups, stats, check


def test_letters_of_one_cause_are_one_group_whatever_the_order_number(desk: Desk) -> None:
    desk.record(*(dead(error=ValueError(f"order {number} has no customer")) for number in range(3)))
    desk.record(dead(error=TimeoutError("no answer")))

    header, first, second = desk.redrive("groups").out.splitlines()

    titles = "GROUP PENDING TOTAL LAST 24 HOURS QUEUE HANDLER OWNER VERDICT CAUSE LAST SEEN"
    assert " ".join(header.split()) == titles
    assert " ".join(first.split()[1:3]) == "3 3"
    cause = "ValueError: order <n> has no customer"
    assert re.fullmatch(rf"orders charge {cause} \d+s ago", " ".join(first.split()[4:]))
    assert second.split()[1:3] == ["1", "1"]
    assert len(listed(desk, "--group", first.split()[0])) == 3


def test_groups_of_a_queue_without_failures_match_nothing(desk: Desk) -> None:
    desk.record(dead())

    assert desk.redrive("groups", "--queue", "orders").code == 0
    unmatched = desk.redrive("groups", "--queue", "mail")
    assert (unmatched.code, unmatched.err) == (3, "No failures of mail.\n")


def test_s2_the_statistics(desk: Desk) -> None:
    """S2's DeadLetterStatistics: total, by queue, by exception type, failure rate by handler."""
    desk.record(dead(), dead(), dead(queue="mail", handler="send_mail", error=TimeoutError("no answer")))

    async def tally(store: DeadLetterStore, _transport: Transport) -> None:
        await store.tally([HandlerTally("charge", "orders", 8, 2), HandlerTally("send_mail", "mail", 0, 1)])

    desk.do(tally)

    told = json.loads(desk.redrive("stats", "--output", "json").out)

    assert told["total_dead_letter_messages"] == 3
    assert told["messages_by_queue"] == {"orders": 2, "mail": 1}
    assert told["messages_by_exception_type"] == {"ValueError": 2, "TimeoutError": 1}
    assert told["failure_rate_by_handler"]["charge"] == {"succeeded": 8, "failed": 2, "rate": 0.2}
    table = desk.redrive("stats").out
    assert "20.0% of 10" in table
    assert "100.0% of 1" in table


def test_s0_reasons_are_counted_most_frequent_first(desk: Desk) -> None:
    """S0's monitor: "motivos por frequência"."""
    desk.record(dead(error=ValueError("b")), dead(error=ValueError("a")), dead(error=ValueError("a")))

    told = json.loads(desk.redrive("stats", "--output", "json").out)

    assert [reason["count"] for reason in told["reasons"]] == [2, 1]


def test_s0_old_letters_are_found(desk: Desk) -> None:
    """S0, test 6: one letter of two days, one of now, and a limit of one day."""
    old, _ = desk.record(dead(age=timedelta(days=2)), dead())

    told = json.loads(desk.redrive("stats", "--older-than", "1d", "--output", "json").out)

    assert told["older_than"] == {"seconds": 86400.0, "count": 1}
    assert listed(desk, "--older-than", "1d") == [old]


def test_s0_the_monitor_alerts_above_its_threshold(desk: Desk) -> None:
    """S0, test 5: ten letters, a threshold of five, "ALERTA: DLQ com 10 mensagens"."""
    desk.record(*(dead(age=timedelta(days=2, hours=3, minutes=1)) for _ in range(10)))

    alert = desk.redrive("check", "--max-pending", "5", "--max-age", "1d")
    fine = desk.redrive("check", "--max-pending", "10", "--max-age", "3d")

    assert (alert.code, alert.err) == (1, "")
    assert alert.out == "ALERT: 10 pending dead letters (limit 5), oldest 2d3h (limit 1d)\n"
    assert (fine.code, fine.out) == (0, "OK: 10 pending dead letters (limit 10), oldest 2d3h (limit 3d)\n")


def test_a_check_without_a_limit_is_a_usage_error(desk: Desk) -> None:
    ended = desk.redrive("check")

    assert ended.code == 2
    assert "--max-pending" in ended.err


def test_check_where_there_is_no_store_makes_none_and_does_not_say_ok(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    done = desk.redrive("check", "--max-pending", "0")
    assert done.code == 6
    assert not (tmp_path / "redrive.db").exists()


def test_what_is_personal_is_masked_until_somebody_says_why_it_must_be_seen(desk: Desk) -> None:
    message = foreign(b'{"cpf": "529.982.247-25", "total": 1.10}', headers=(("authorization", "Bearer abc"),))
    [letter_id] = desk.record(dead(message, error=ValueError("no customer ana@example.com")))

    masked = desk.redrive("show", letter_id, "--output", "json").out
    listed = desk.redrive("list", "--output", "json").out
    revealed = desk.redrive("show", letter_id, "--reveal", "she called us", "--output", "json").out

    for secret in ("529.982.247-25", "Bearer abc", "ana@example.com"):
        assert secret not in masked + listed
        assert secret in revealed
    assert '\\"total\\": 1.10' in masked
    assert desk.redrive("show", letter_id, "--reveal", " ").code == 2
    told = desk.redrive("audit", "list", "--output", "json").out
    assert "revealed" in told
    assert "she called us" in told
