"""What goes wrong between the command line and a server, and what is told about it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx2
import pytest
from starlette.requests import Request

from redrive import errors
from redrive.api.problems import answer_to
from redrive.epoch import EPOCH
from redrive.errors import RedriveError, Unreachable
from redrive.letter_query import LetterQuery
from redrive.remote.address import server_of
from redrive.remote.runs import RemoteRuns
from redrive.remote.told import error_of
from redrive.run import Run, RunPlan, RunStatus
from support.certificates import make_certificates
from support.dead_letters import dead
from support.desk import Desk, Ended
from support.serving import serving

TOKEN = "rdv_abcdefghijkl_" + "0" * 64


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith("REDRIVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REDRIVE_TOKEN", TOKEN)
    return Desk(tmp_path)


def answering(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


class Stranger(HTTPServer):
    """Somebody else's server, which answers every question in one way."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.asked: list[tuple[str, str]] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers.get("authorization", "")))
                answer(self)

            do_POST = do_GET  # noqa: N815  the name that the server looks for

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def stranger(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Stranger]:
    with Stranger(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(desk: Desk, answer: Callable[[BaseHTTPRequestHandler], None], *arguments: str) -> Ended:
    with stranger(answer) as server:
        return desk.redrive("--server", server.url, *(arguments or ("list",)))


# Whom the token is shown to


@pytest.mark.parametrize(
    "url", ["http://redrive.example.org", "http://10.0.0.1:8642", "http://127.0.0.1.example.org"]
)
def test_a_token_is_not_sent_in_the_clear(desk: Desk, url: str) -> None:
    ended = desk.redrive("--server", url, "list")

    assert (ended.code, ended.out) == (2, "")
    assert "could be read on the way" in ended.err
    assert "https://" in ended.err


@pytest.mark.parametrize(
    "url", ["https://ann:s3cret@redrive.example.org", "https://h/?token=s3cret", "https://h/#s3cret"]
)
def test_a_secret_in_the_url_is_refused_and_not_repeated(desk: Desk, url: str) -> None:
    ended = desk.redrive("--server", url, "list")

    assert ended.code == 2
    assert "REDRIVE_TOKEN" in ended.err
    assert "s3cret" not in ended.err + ended.out


@pytest.mark.parametrize("url", ["redrive.example.org", "ftp://h", "https://", "https://h:x", "amqp://h"])
def test_what_is_no_url_is_told_as_such(desk: Desk, url: str) -> None:
    ended = desk.redrive("--server", url, "list")

    assert (ended.code, "is no server's URL" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("https://h.example/redrive/", "https://h.example/redrive"),
        ("https://h.example:8443/api/v1", "https://h.example:8443"),
        ("http://localhost:8642/api/v1/", "http://localhost:8642"),
        ("http://[::1]:8642", "http://[::1]:8642"),
    ],
)
def test_the_url_may_be_that_of_the_api_or_of_a_path_below_a_proxy(given: str, meant: str) -> None:
    assert server_of(given, token_file=None, environ={"REDRIVE_TOKEN": TOKEN}).url == meant


def test_without_a_token_it_says_how_to_get_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRIVE_TOKEN")
    ended = desk.redrive("--server", "https://redrive.example.org", "list")

    assert ended.code == 2
    assert "redrive tokens create" in ended.err


def test_a_token_comes_from_a_file_and_what_is_looked_for_stands_in_no_url(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("rdv_from_a_file\n")
    page = b'{"items": [], "next": null, "previous": null, "count": {"number": 3, "exact": true}}'
    with stranger(answering(200, page, content_type="application/json")) as server:
        named = ("--server", server.url, "--token-file", str(tmp_path / "token"))
        ended = desk.redrive(*named, "list", "--where", "data.cpf:52998224725", "--count")

    assert (ended.code, ended.out) == (0, "3\n")
    assert server.asked == [("/api/v1/dlq-search", "Bearer rdv_from_a_file")]
    assert desk.redrive("--server", server.url, "--token-file", str(tmp_path / "none"), "list").code == 2


def test_a_redirect_is_not_followed_with_the_token(desk: Desk) -> None:
    with stranger(answering(200, b"{}", content_type="application/json")) as elsewhere:
        ended = asked(desk, answering(302, location=elsewhere.url))

    assert (ended.code, elsewhere.asked) == (2, [])
    assert "sends on to another address" in ended.err


def test_over_tls_only_a_server_that_is_trusted_gets_the_token(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path / "certificates")
    desk.record(dead())
    with serving(desk, "--tls-cert", str(made.certificate), "--tls-key", str(made.key)) as served:
        monkeypatch.setenv("REDRIVE_TOKEN", served.token)
        strange = desk.redrive("--server", served.url, "list", "--count")
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        trusted = desk.redrive("--server", served.url, "list", "--count")

    assert (strange.code, "certificate" in strange.err) == (6, True)
    assert (trusted.code, trusted.out) == (0, "1\n")


def test_a_token_that_the_server_does_not_know_is_told_with_the_way_to_one(desk: Desk) -> None:
    with serving(desk) as served:
        ended = desk.redrive("--server", served.url, "list")

    assert ended.code == 5
    assert f"{served.url} does not let this token in" in ended.err
    assert "redrive tokens create" in ended.err


def test_the_token_is_in_no_text_that_is_told(desk: Desk) -> None:
    for answer in (answering(401), answering(500), answering(200, b"<p>", content_type="text/html")):
        ended = asked(desk, answer)
        assert TOKEN not in ended.out + ended.err


# Who answers


def test_nobody_there_is_told_with_the_url(desk: Desk) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        ended = desk.redrive("--server", url, "list")

    assert ended.code == 6
    assert f"cannot reach {url}" in ended.err
    assert "redrive serve" in ended.err


@pytest.mark.parametrize(("status", "code"), [(200, 1), (403, 1), (502, 6), (503, 6), (504, 6)])
def test_a_page_of_a_proxy_is_told_as_such(desk: Desk, status: int, code: int) -> None:
    ended = asked(desk, answering(status, b"<html>Sign in</html>", content_type="text/html; charset=utf-8"))

    assert ended.code == code
    assert f"answers {status} with a page of HTML, not as a Redrive server does" in ended.err


def test_a_server_that_is_away_for_a_while_is_unreachable(desk: Desk) -> None:
    body = b'{"detail": "that took too long", "status": 503, "remedy": "ask for less at once"}'
    ended = asked(desk, answering(503, body, content_type="application/problem+json", retry_after="5"))

    assert ended.code == 6
    assert "that took too long" in ended.err
    assert "try again in 5 s" in ended.err


def test_an_answer_of_another_version_is_told_as_such(desk: Desk) -> None:
    ended = asked(desk, answering(200, b'{"things": []}', content_type="application/json"))

    assert (ended.code, "of another version" in ended.err) == (1, True)


def test_a_route_that_an_older_server_does_not_have_is_named(desk: Desk) -> None:
    ended = asked(
        desk, answering(404, b'{"detail": "Nothing", "status": 404}', content_type="application/problem+json")
    )

    assert ended.code == 2
    assert "does not know POST /api/v1/dlq-search" in ended.err


def test_an_export_that_breaks_off_is_not_taken_for_a_whole_one(desk: Desk) -> None:
    cut = answering(200, b"1\r\n{\r\n", content_type="application/x-ndjson", transfer_encoding="chunked")
    half = answering(200, b'{"id": ', content_type="application/x-ndjson")

    assert asked(desk, cut, "export").code == 6
    assert asked(desk, half, "export").code == 6


async def test_a_run_is_watched_on_when_the_server_was_away_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.remote.runs._LOOK_EVERY", 0.001)
    done = Run(
        id="01890000-0000-7000-8000-000000000000",
        plan=RunPlan(selection=LetterQuery()),
        status=RunStatus.DONE,
        requested_by="ann",
        created_at=EPOCH,
        changed_at=EPOCH,
        total=0,
    )
    looks: Iterator[Run | Unreachable] = iter([Unreachable("away"), Unreachable("away"), done])

    class Watching(RemoteRuns):
        async def run(self, run_id: str) -> Run:  # noqa: ARG002  there is one
            found = next(looks)
            if isinstance(found, Unreachable):
                raise found
            return found

    assert await Watching().carry_out(done.id) is done


# Errors are those of the desk


def instances() -> list[RedriveError]:
    """One of every kind there is, whatever its own constructor takes."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, RedriveError)]
    made = [kind.__new__(kind) for kind in kinds]
    for each in made:
        RedriveError.__init__(each, "what happened", remedy="do that")
        if isinstance(each, errors.FilterError):
            each.column = 3
    return made


@pytest.mark.parametrize("error", instances(), ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_one_behind_the_server(error: RedriveError) -> None:
    scope = {"type": "http", "path": "/", "headers": [], "redrive.request_id": "r"}
    told = answer_to(Request(scope), error)
    response = httpx2.Response(
        told.status_code,
        headers=dict(told.headers),
        content=bytes(told.body),
        request=httpx2.Request("GET", "http://localhost/"),
    )

    found = error_of(response, "http://localhost")

    assert (type(found), found.exit_code) == (type(error), error.exit_code)
    if not isinstance(error, errors.Unreachable | errors.ConfigurationError):  # hosts and files of the server's
        assert (str(found), found.remedy) == (str(error), error.remedy)
    assert getattr(found, "column", None) == getattr(error, "column", None)


# What a server is not for

AT_THE_STORE = [
    "engine",
    "collect",
    "reprocess --queue orders_dlq --yes",
    "setup",
    "db upgrade",
    "db check",
    "db index",
    "db environment",
    "retention run",
    "import letters.jsonl",
    "doctor",
    "audit verify",
    "audit checkpoint",
    "send orders {}",
    "serve",
]


@pytest.mark.parametrize("command", AT_THE_STORE)
def test_what_needs_the_store_itself_says_so(desk: Desk, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.folder / "letters.jsonl").write_text("{}\n")
    before = sorted(desk.folder.iterdir())
    monkeypatch.setenv("REDRIVE_SERVER", "https://redrive.example.org")
    ended = desk.redrive(*command.split())

    assert ended.code == 2, ended.err
    assert "not through a server" in ended.err
    assert sorted(desk.folder.iterdir()) == before


def test_another_name_is_for_the_store_alone(desk: Desk) -> None:
    ended = desk.redrive("--server", "https://redrive.example.org", "runs", "pause", "01890000", "--as", "bob")

    assert (ended.code, "whoever the token is for" in ended.err) == (2, True)


def test_an_empty_server_is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_SERVER", "https://redrive.example.org")

    assert desk.redrive("--server", "", "list").code == 0
