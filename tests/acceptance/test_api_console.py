"""What the console asks for: overview, groups, filters, parts of letters, approvals and settings, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redrive.access import Role
from redrive.approvals import ApprovalRules
from redrive.loaded import Loaded, LoadedQueue, LoadedRule
from redrive.message import Message
from redrive.run_policy import RunPolicy
from support.api_house import House, open_house
from support.dead_letters import an_order, foreign

ADMIN, VIEWER, OPERATOR, PAYLOAD, APPROVER = Role.ADMIN, Role.VIEWER, Role.OPERATOR, Role.PAYLOAD, Role.APPROVER
ORDERS: dict[str, Any] = {"selection": {"q": "queue:orders"}, "reason": "it is back"}
CPF = "111.444.777-35"
QUIET = LoadedQueue(
    expire_after=None, assume_after=None, redrive_rate=2.0, ordered_by=None, keep=60.0, keep_discarded=30.0
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path, audited=True) as opened:
        yield opened


async def told(house: House, path: str, *roles: Role, **more: Any) -> Any:
    answer = await house.ask("POST" if "json" in more else "GET", path, *(roles or (VIEWER,)), **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def the_group(house: House, queue: str = "orders") -> str:
    (group,) = (await told(house, f"/groups?queue={queue}"))["items"]
    found: str = group["id"]
    return found


def sent(data: Any, **headers: str) -> Message:
    return foreign(msgspec.json.encode(data), headers=tuple(headers.items()))


async def test_the_overview_tells_what_is_going_on(house: House) -> None:
    await house.letter()
    resolved = await house.letter("mail", age=timedelta(minutes=30))
    await house.ask("PUT", f"/dlq/{resolved}/resolve", OPERATOR)

    found = await told(house, "/overview")

    assert (found["by_status"]["PENDING"], found["arrived"]["RESOLVED"]) == (1, 1)
    assert (found["last_5_minutes"], found["last_hour"]["number"]) == ({"number": 1, "exact": True}, 2)
    assert found["oldest_pending"] is not None


async def test_what_was_sent_back_is_told_with_how_it_ended(house: House) -> None:
    letter_id = await house.letter()
    await house.ask("POST", "/runs", OPERATOR, json=ORDERS)
    await house.carry_out()

    (redrive,) = (await told(house, f"/dlq/{letter_id}/redrives"))["items"]
    (run,) = (await told(house, f"/groups/{await the_group(house)}/redrives"))["runs"]

    assert (await told(house, "/overview"))["redriven"]["outcomes"] == {"under way": 1}
    assert (redrive["by"], redrive["outcome"]) == ("token:operator of test", "under way")
    assert (run["run_id"], run["outcomes"]) == (redrive["run_id"], {"under way": 1})


async def test_arrivals_are_stacked_by_group(house: House) -> None:
    for queue in ("orders", "orders", "mail"):
        await house.letter(queue)

    found = await told(house, "/overview/arrivals?top=1")

    assert [(each["queue"], each["letters"]) for each in found["groups"]] == [("orders", 2)]
    assert (sum(found["others"]), sum(found["total"])) == (1, 3)
    assert len(found["starts"]) == len(found["groups"][0]["counts"])


async def test_groups_of_a_time_say_whether_they_are_new(house: House) -> None:
    await house.letter(age=timedelta(days=9))
    await house.letter()
    await house.letter("mail")

    items = (await told(house, "/overview/groups"))["items"]

    assert [(each["group"]["queue"], each["appearance"], each["why"]) for each in items] == [
        ("mail", "new", None),
        ("orders", "returning", "quiet"),
    ]


@pytest.mark.parametrize(
    "span",
    [
        "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
        "since=0001-01-01T00:00:00Z",
        "until=9999-12-31T23:59:59Z",
    ],
)
async def test_a_span_that_cannot_be_is_refused(house: House, span: str) -> None:
    for path in ("/overview", "/overview/arrivals", "/overview/groups"):
        assert (await house.ask("GET", f"{path}?{span}", VIEWER)).status_code == 400, path


async def test_groups_are_turned_page_by_page(house: House) -> None:
    for queue in ("a", "b", "c"):
        await house.letter(queue)

    first = await told(house, "/groups?sort=first_seen&limit=2")
    rest = await told(house, f"/groups?sort=first_seen&limit=2&after={first['next']}")

    assert [each["queue"] for each in (*first["items"], *rest["items"])] == ["c", "b", "a"]
    assert rest["next"] is None
    assert (await house.ask("GET", "/groups?after=nonsense", VIEWER)).status_code == 400


async def test_groups_are_not_found_by_what_is_masked_in_their_titles(house: House) -> None:
    await house.letter(error=ValueError("no way in with password=correcthorse today"))

    shown = (await told(house, "/groups"))["items"][0]["title"]

    assert "correcthorse" not in shown
    assert (await told(house, "/groups?text=correcthorse"))["items"] == []
    assert len((await told(house, "/groups?text=NO WAY"))["items"]) == 1


async def test_what_a_group_has_in_common_is_told_with_numbers(house: House) -> None:
    for number in range(30):
        country = "PT" if number else "BR"
        await house.letter(message=sent({"country": country, "cpf": CPF}), error=KeyError("vat"))
        await house.letter(message=sent({"country": "BR", "cpf": ""}))
    group = next(each["id"] for each in (await told(house, "/groups"))["items"] if "KeyError" in each["title"])

    found = await told(house, f"/groups/{group}/common")

    assert (found["here"], found["elsewhere"]) == (30, 30)
    by_name = {each["name"]: each for each in found["commonalities"]}
    country = by_name["data.country"]
    assert (country["value"], country["here"], country["elsewhere"]) == ("PT", 29, 0)
    assert country["filter"] == "data.country:PT"
    assert (by_name["data.cpf"]["here"], by_name["data.cpf"]["filter"]) == (30, None)
    assert CPF not in str(found)


async def test_attempts_of_a_group_are_told(house: House) -> None:
    await house.letter(attempts=2)

    found = await told(house, f"/groups/{await the_group(house)}/attempts")

    assert (found["letters"], [(each["attempt"], each["failed"]) for each in found["attempts"]]) == (
        1,
        [(1, 1), (2, 1)],
    )


async def test_a_filter_is_completed_and_checked(house: House) -> None:
    await house.letter("orders")

    completed = await told(house, "/search/complete", json={"q": "-queue:or", "at": 9})
    good = await told(house, "/search/check", json={"q": " queue:orders "})
    bad = await told(house, "/search/check", json={"q": "queue:orders colour:red"})

    assert completed["items"] == [{"text": "orders", "replaces": [7, 9], "what": ""}]
    assert good == {"problem": None, "canonical": "queue:orders"}
    assert (bad["problem"]["column"], bad["canonical"]) == (14, "")
    assert bad["problem"]["remedy"]


async def test_names_of_fields_are_completed_from_the_beginning(house: House) -> None:
    items = (await told(house, "/search/complete", json={"q": "qu", "at": 2}))["items"]

    assert items[0]["text"] == "queue:"


async def test_facets_are_those_of_the_filter(house: House) -> None:
    await house.letter("orders")
    await house.letter("mail")

    found = await told(house, "/search/facets", json={"selection": {"q": "queue:orders"}})

    assert (found["queue"], found["counted"], found["exact"]) == ([{"value": "orders", "letters": 1}], 1, True)


async def test_letters_of_one_correlation_id_are_related(house: House) -> None:
    message = {"correlation_id": "c-1"}
    one, other = [await house.letter(message=sent(message)) for _ in range(2)]
    await house.letter()

    assert [each["id"] for each in (await told(house, f"/dlq/{one}/related"))["items"]] == [other]


async def test_a_letter_may_be_told_with_a_part_of_its_body_and_headers(house: House) -> None:
    headers = tuple((f"x{number}", "v") for number in range(50))
    letter_id = await house.letter(message=foreign("é".encode() * 100, headers=headers))

    cut = (await told(house, f"/dlq/{letter_id}?most_bytes=7&most_headers=3"))["message"]
    whole = (await told(house, f"/dlq/{letter_id}"))["message"]

    assert (cut["body"], cut["body_encoding"], cut["body_size"]) == ("ééé", "utf-8", 200)
    assert ([name for name, *_ in map(list, cut["headers"])], cut["header_count"]) == (["x0", "x1", "x2"], 50)
    assert (whole["body"], len(whole["headers"])) == ("é" * 100, 50)


async def test_a_body_is_given_as_a_file_masked_or_some_bytes_of_it(house: House) -> None:
    letter_id = await house.letter(message=sent({"cpf": CPF}))

    whole = await house.ask("GET", f"/dlq/{letter_id[:13]}/body", VIEWER)
    part = await house.ask("GET", f"/dlq/{letter_id}/body?offset=1&limit=5", VIEWER)

    assert CPF.encode() not in whole.content
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-disposition"].startswith("attachment;")
    assert (part.content, part.headers["redrive-body-size"]) == (b'"cpf"', str(len(whole.content)))


async def test_bytes_that_are_no_text_are_given_exactly_to_whoever_may_see_them(house: House) -> None:
    raw = bytes(range(256))
    letter_id = await house.letter(message=foreign(raw))
    asked = ("POST", f"/dlq/{letter_id}/body/reveal")

    refused = await house.ask(*asked, VIEWER, json={"reason": "to see it"})
    unsaid = await house.ask(*asked, PAYLOAD, json={})
    given = await house.ask(*asked, PAYLOAD, json={"reason": "to see it"})
    part = await house.ask("POST", f"{asked[1]}?offset=250&limit=3", PAYLOAD, json={"reason": "a part"})
    entries = (await house.ask("GET", "/audit", ADMIN)).json()["items"]

    assert (refused.status_code, unsaid.status_code, given.content) == (403, 400, raw)
    assert (part.content, part.headers["redrive-body-size"]) == (bytes((250, 251, 252)), "256")
    revealed = [each for each in entries if each["what"] == "revealed"]
    assert [each["reason"] for each in revealed] == ["a part", "to see it"]


async def test_approvals_are_those_that_whoever_asks_could_give(tmp_path: Path) -> None:
    policy = RunPolicy(approval=ApprovalRules(more_than=0))
    async with open_house(tmp_path, policy=policy) as house:
        await house.letter()
        run = (await house.ask("POST", "/runs", ADMIN, json=ORDERS)).json()["run"]

        mine = await told(house, "/approvals", ADMIN)
        theirs = await told(house, "/approvals", APPROVER)
        elsewhere = await told(house, "/approvals", APPROVER, queues=("mail",))
        await house.ask("POST", f"/runs/{run['id']}/approve", APPROVER, json={})

        assert (mine["items"], elsewhere["items"]) == ([], [])
        assert [each["id"] for each in theirs["items"]] == [run["id"]]
        assert (await told(house, "/approvals", APPROVER))["items"] == []


async def test_runs_are_turned_page_by_page(house: House) -> None:
    made = []
    for number in range(3):
        await house.letter()
        asked = ORDERS | {"reason": f"for the {number}th time"}
        made.append((await house.ask("POST", "/runs", OPERATOR, json=asked)).json()["run"]["id"])

    first = await told(house, "/runs?limit=2")
    rest = await told(house, f"/runs?limit=2&after={first['next']}")

    assert [each["id"] for each in (*first["items"], *rest["items"])] == made[::-1]
    assert rest["next"] is None
    assert (await told(house, "/runs?limit=2", VIEWER, queues=("mail",)))["items"] == []


async def test_settings_are_told_and_to_some_only_what_is_about_their_queues(tmp_path: Path) -> None:
    rule = LoadedRule(
        name="timeouts", enabled=True, when="queue:orders", wait=600.0, at_most=3, rate=None, window=None,
        time_zone="UTC",
    )  # fmt: skip
    loaded = Loaded(
        rules=(rule,),
        approval=ApprovalRules(more_than=5, queues=frozenset({"orders", "mail"})),
        queues={"orders": QUIET, "mail": QUIET},
    )
    async with open_house(tmp_path, loaded=loaded) as house:
        every = await told(house, "/settings")
        some = (await told(house, "/settings", VIEWER, queues=("mail*",)))["loaded"]

        assert (every["loaded"]["rules"][0]["name"], every["loaded"]["partial"]) == ("timeouts", False)
        assert every["roles"]["viewer"] == ["letters:read"]
        assert (some["rules"], list(some["queues"]), some["approval"]["queues"]) == ([], ["mail"], ["mail"])
        assert some["partial"]


async def test_a_token_of_some_queues_is_told_of_those_alone(house: House) -> None:
    """Each route, with something in it that must not be told."""
    hidden = [
        await house.letter("secretq", message=sent({"correlation_id": "c", "x": "strange"})) for _ in range(2)
    ]
    mine = await house.letter("mail", message=sent({"correlation_id": "c"}))
    group = await the_group(house, "secretq")
    asked = [
        *(("GET", each, None) for each in ("/overview", "/overview/arrivals", "/overview/groups", "/groups")),
        ("GET", f"/dlq/{mine}/related", None),
        ("POST", "/search/facets", {}),
        ("POST", "/search/facets", {"selection": {"q": "customer"}}),
        ("POST", "/search/complete", {"q": "queue:", "at": 6}),
    ]
    for method, path, body in asked:
        more: dict[str, Any] = {} if body is None else {"json": body}
        answer = await house.ask(method, path, VIEWER, queues=("mail",), **more)
        assert answer.status_code == 200, path
        assert "secretq" not in answer.text, path
        assert not any(each in answer.text for each in (group, *hidden)), path

    for path in (
        *(f"/dlq/{hidden[0]}/{each}" for each in ("related", "redrives", "body")),
        *(f"/groups/{group}/{each}" for each in ("common", "attempts", "redrives")),
    ):
        assert (await house.ask("GET", path, VIEWER, queues=("mail",))).status_code == 404, path
    revealed = await house.ask(
        "POST", f"/dlq/{hidden[0]}/body/reveal", PAYLOAD, queues=("mail",), json={"reason": "x"}
    )
    assert revealed.status_code == 404
    assert (await told(house, "/overview", VIEWER, queues=("mail",)))["by_status"]["PENDING"] == 1


async def test_an_order_in_an_envelope_is_compared_by_its_data(house: House) -> None:
    for number in range(30):
        await house.letter(message=an_order(7), error=KeyError("vat"))
        await house.letter(message=an_order(number + 100))
    group = next(each["id"] for each in (await told(house, "/groups"))["items"] if "KeyError" in each["title"])

    names = {
        each["name"]: each["value"] for each in (await told(house, f"/groups/{group}/common"))["commonalities"]
    }

    assert names == {"data.order_id": "7"}
