"""What Schemathesis once found in the values of queries, on a server that it does not ask: as an administrator it
may revoke the token of everybody else.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from support.serving import Served, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("api")) as started:
        yield started


@pytest.mark.parametrize("number", ["12", "2.2250738585e-313", "-5.489724174871199e-70", "1.e-5"])
@pytest.mark.parametrize(
    "asked_for", ["overview?until", "overview/groups?since", "dlq?created_after", "audit?since"]
)
def test_a_number_is_no_moment(server: Served, asked_for: str, number: str) -> None:
    allowed = {"authorization": f"Bearer {server.token}"}

    refused = httpx2.get(f"{server.url}/api/v1/{asked_for}={number}", headers=allowed)
    taken = httpx2.get(f"{server.url}/api/v1/{asked_for}=2026-05-17T12:00:00Z", headers=allowed)

    assert (refused.status_code, taken.status_code) == (422, 200)


def test_one_value_of_a_list_in_a_url_is_a_list_of_one(server: Served) -> None:
    """So it breaks no schema, which support/schemathesis_hooks.py has to tell Schemathesis."""
    allowed = {"authorization": f"Bearer {server.token}"}
    told = httpx2.get(f"{server.url}/api/v1/openapi.json").json()["paths"]["/api/v1/queues"]["get"]["parameters"]

    none = httpx2.get(f"{server.url}/api/v1/stats/count?ids=false", headers=allowed)

    assert (none.status_code, none.json()["number"]) == (200, 0)
    assert next(each["schema"]["type"] for each in told if each["name"] == "queue") == "array"
