"""A client that nobody here wrote: a public generator makes it of our OpenAPI. It lists, retries and resolves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from redrive.access import Role
from support.serving import served

GENERATOR = Path(sys.executable).parents[1] / "generator" / "bin"

SCRIPT = """
import json, sys
from client import AuthenticatedClient
from client.api.letters import letters_list_letters, letters_resolve, letters_retry, letters_show
from client.models import Status

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
page = letters_list_letters.sync(client=client, status=Status.PENDING, limit=2)
first, second = (letter.id for letter in page.items)
sent = letters_retry.sync_detailed(first, client=client)
solved = letters_resolve.sync_detailed(second, client=client, resolved_by="the generated client")
shown = letters_show.sync(second, client=client)
codes = [int(sent.status_code), int(solved.status_code)]
print(json.dumps([*codes, sent.parsed.run_id, str(shown.status), shown.id == second]))
"""


@pytest.mark.timeout(180)
def test_a_generated_client_lists_retries_and_resolves(tmp_path: Path) -> None:
    assert (GENERATOR / "openapi-python-client").exists(), "`make test` installs it"
    with served(tmp_path, letters=3) as server:
        (tmp_path / "openapi.json").write_text(httpx2.get(f"{server.url}/api/v1/openapi.json").text)
        make = ["generate", "--path", "openapi.json", "--meta", "none", "--output-path", "client"]
        made = subprocess.run(
            [GENERATOR / "openapi-python-client", *make], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert "Unable to process schema" not in made.stdout + made.stderr
        (tmp_path / "use.py").write_text(SCRIPT)
        used = subprocess.run(
            [GENERATOR / "python", "use.py", server.url, server.tokens[Role.OPERATOR]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert used.returncode == 0, used.stderr
    sent, solved, run_id, status, same = json.loads(used.stdout)
    assert (sent, solved, status, same) == (202, 200, "RESOLVED", True)
    assert run_id
