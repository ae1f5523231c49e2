"""Nobody has this process ask inside its own network (TH15)."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import ssl
from collections.abc import Sequence

import pytest

from redrive.errors import Refused, Unreachable
from redrive.outgoing import LARGEST_ANSWER, Answer, Outgoing, Target
from redrive.public_address import is_public
from support.certificates import Certificates, make_certificates
from support.listener import Listener, http, listening

PUBLIC = "93.184.215.14"
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.localdomain": ["127.0.0.1"],
    "sub.localhost": ["127.0.0.1", "::1"],
    "ip6-localhost": ["::1"],
    "public.example": [PUBLIC],
    "six.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
    "one-of-two.example": [PUBLIC, "127.0.0.1"],
    "last-of-many.example": [*[PUBLIC] * 9, "::1"],
    "mixed.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:127.0.0.1"],
    "private.example": ["10.1.2.3"],
    "metadata.example": ["169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "link-local.example": ["fe80::1%lo"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "garbage.example": ["not an address"],
    "empty.example": [],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "xn--nxasmq6b.example": ["127.0.0.1"],
    "kubernetes.default.svc": ["10.96.0.1"],
    "host.docker.internal": ["172.17.0.1"],
}


async def resolve(host: str, _port: int) -> Sequence[str]:
    """A name server of ours: nothing leaves this machine."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    if host in NAMES:
        return NAMES[host]
    raise OSError("no such host")


def outgoing(listener: Listener, **options: object) -> Outgoing:
    """The listener's port is one of those that may be asked: it is the address that has to be refused."""
    ports = {443, 8443, listener.port}
    return Outgoing(**{"ports": ports, "resolve": resolve, "deadline": 2.0, **options})  # type: ignore[arg-type]


FORBIDDEN = [
    # Loopback and "this host", in every way to write it
    *("https://127.0.0.1:PORT/", "https://127.0.0.1:PORT", "https://127.1:PORT/", "https://127.0.1:PORT/"),
    *("https://127.255.255.254:PORT/", "https://0:PORT/", "https://0.0.0.0:PORT/", "https://0x7f000001:PORT/"),
    *("https://0x7f.0.0.1:PORT/", "https://0177.0.0.1:PORT/", "https://2130706433:PORT/"),
    *("https://017700000001:PORT/", "https://127.0.0.1.:PORT/", "https://127.0.0.01:PORT/"),
    *("https://127.0.0.0x1:PORT/", "https://[::1]:PORT/", "https://[::]:PORT/", "https://[0:0:0:0:0:0:0:1]:PORT/"),
    *("https://[::ffff:127.0.0.1]:PORT/", "https://[::ffff:7f00:1]:PORT/", "https://[::127.0.0.1]:PORT/"),
    *("https://[64:ff9b::127.0.0.1]:PORT/", "https://[64:ff9b::7f00:1]:PORT/", "https://[2002:7f00:1::]:PORT/"),
    *("https://[2002:7f00:0001::1]:PORT/", "https://[2001:0:7f00:1::]:PORT/"),
    *(
        "https://[2001:0:5db8:d70e:0:0:80ff:fffe]:PORT/",
        "https://[fe80::1%25lo]:PORT/",
        "https://[::1%25lo]:PORT/",
    ),
    *(
        "https://[64:ff9b:1::7f00:1]:PORT/",
        "https://[fe80::5efe:7f00:1]:PORT/",
        "https://[2600::5efe:7f00:1]:PORT/",
    ),
    *(
        "https://localhost:PORT/",
        "https://LOCALHOST:PORT/",
        "https://localhost.:PORT/",
        "https://sub.localhost:PORT/",
    ),
    *("https://localhost.localdomain:PORT/", "https://ip6-localhost:PORT/", "https://127.0.0.1.nip.io:PORT/"),
    # Private, shared, link-local, multicast, reserved
    *("https://10.0.0.1/", "https://10.255.255.255/", "https://172.16.0.1/", "https://172.31.255.255/"),
    *("https://192.168.0.1/", "https://100.64.0.1/", "https://169.254.169.254/latest/meta-data/"),
    *("https://169.254.0.1/", "https://192.0.0.1/", "https://192.0.2.1/", "https://198.18.0.1/"),
    *("https://198.51.100.1/", "https://203.0.113.1/", "https://192.88.99.1/", "https://224.0.0.1/"),
    *("https://239.255.255.250/", "https://240.0.0.1/", "https://255.255.255.255/", "https://[fc00::1]/"),
    *("https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[fec0::1]/", "https://[ff02::1]/"),
    *(
        "https://[2001:db8::1]/",
        "https://[100::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:169.254.169.254]/",
    ),
    *("https://[2002:a00:1::]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[3fff::1]/", "https://[5f00::1]/"),
    # Names that lead there
    *("https://one-of-two.example:PORT/", "https://last-of-many.example:PORT/", "https://mixed.example:PORT/"),
    *("https://private.example/", "https://metadata.example/", "https://metadata.google.internal/"),
    *("https://link-local.example:PORT/", "https://nat64.example:PORT/", "https://garbage.example:PORT/"),
    *("https://empty.example:PORT/", "https://unknown.example:PORT/", "https://kubernetes.default.svc/"),
    *("https://host.docker.internal/", "https://xn--nxasmq6b.example:PORT/"),
    # Another scheme
    *(
        "http://127.0.0.1:PORT/",
        "http://public.example/",
        "http://public.example:443/",
        "http://public.example:PORT/",
        "http://[::1]:PORT/",
        "ftp://127.0.0.1:PORT/",
    ),
    *("file:///etc/passwd", "gopher://127.0.0.1:PORT/_x", "dict://127.0.0.1:PORT/", "ldap://127.0.0.1:PORT/"),
    *(
        "unix:///var/run/docker.sock",
        "jar:https://127.0.0.1:PORT!/",
        "javascript:alert(1)",
        "data:,x",
        "//127.0.0.1/",
    ),
    *("https:127.0.0.1:PORT", "https:/127.0.0.1:PORT/", "https:///127.0.0.1:PORT/", "https:\\\\127.0.0.1:PORT\\"),
    # Two readers, two hosts
    *(
        "https://public.example@127.0.0.1:PORT/",
        "https://127.0.0.1:PORT@public.example:22/",
        "https://a:b@127.0.0.1/",
    ),
    *("https://public.example\\@127.0.0.1:PORT/", "https://127.0.0.1:PORT\\@public.example/"),
    *("https://public.example#@127.0.0.1:PORT/", "https://127.0.0.1:PORT#.public.example/"),
    *("https://127.0.0.1%00.public.example:PORT/", "https://127.0.0.1%2e:PORT/", "https://127.0.0.1\t:PORT/"),
    *("https://127.0.0.1:PORT/\r\nHost: public.example", " https://127.0.0.1:PORT/", "https://public.example /"),
    *(
        "https://①②⑦.⓪.⓪.①:PORT/",
        "https://127。0。0。1:PORT/",
        "https://\uff4cocalhost:PORT/",
        "https://löcalhost/",
    ),
    *("https://[::1/", "https://::1/", "https://[v1.x]/", "https://[127.0.0.1]:PORT/", "https://[]/", "https:///"),
    *(
        "https://-a.example/",
        "https://a..example/",
        "https://*/",
        "https://a_b_.1/",
        f"https://{'a' * 64}.example/",
    ),
    # Other ports
    *("https://public.example:22/", "https://public.example:6379/", "https://public.example:0/"),
    *("https://public.example:65536/", "https://public.example:-1/", "https://public.example:4x3/"),
    *("https://public.example:80/", "https://public.example:25/", f"https://public.example/{'x' * 3000}", ""),
]


NOWHERE = {"https://empty.example:PORT/", "https://unknown.example:PORT/"}


async def test_nothing_inside_is_ever_asked() -> None:
    async with listening() as listener:
        client = outgoing(listener)
        for url in FORBIDDEN:
            # Refused: before anything was connected to. Nobody can be asked who has no address.
            expected = Unreachable if url in NOWHERE else Refused
            with pytest.raises(expected):
                await client.get(url.replace("PORT", str(listener.port)))

        assert listener.seen == 0
        assert len(set(FORBIDDEN)) == len(FORBIDDEN) >= 80


async def test_the_listener_would_have_been_heard() -> None:
    """The test above proves something: whoever is allowed gets through."""
    async with listening(http(b"hello")) as listener:
        client = outgoing(listener, allowed=["localhost", "127.0.0.1", "::1"])
        for host in ("localhost", "127.0.0.1", "[::1]"):
            assert await client.get(f"http://{host}:{listener.port}/x?y=1") == Answer(200, b"hello")
        assert listener.seen == 3
        assert listener.requests[0].startswith(b"GET /x?y=1 HTTP/1.1\r\n")
        assert f"host: localhost:{listener.port}\r\n".encode() in listener.requests[0].lower()


@pytest.mark.parametrize(
    "address",
    [PUBLIC, "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8", "2002:808:808::1",
     "64:ff9b::808:808", "2001:4860:4860::8888"],
)  # fmt: skip
def test_public_addresses_are_public_whatever_they_are_wrapped_in(address: str) -> None:
    assert is_public(address)


class Sent(Outgoing):
    """Tells where it would connect, and does not."""

    def __init__(self, answers: Sequence[Sequence[str]], **options: object) -> None:
        self.asked: list[str] = []
        self.sent: list[str] = []
        self._answers = list(answers)
        super().__init__(resolve=self._next, **options)  # type: ignore[arg-type]

    async def _next(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0)

    async def _send(self, _method: str, target: Target, address: str, *_: object) -> Answer:
        self.sent.append(target.url_at(address))
        return Answer(200, b"")


async def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to() -> None:
    client = Sent([[PUBLIC], ["127.0.0.1"]])  # a name server that changes its mind

    await client.get("https://rebinding.example/hook")
    with pytest.raises(Refused):
        await client.get("https://rebinding.example/hook")

    assert client.asked == ["rebinding.example"] * 2
    assert client.sent == [f"https://{PUBLIC}:443/hook"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def server_of(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.certificate, certificates.key)
    return context


async def test_the_connection_goes_to_the_address_and_tls_to_the_name(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NAMES, "other.example", ["127.0.0.1"])
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    async with listening(http(b"hello"), security=server_of(certificates)) as listener:
        client = outgoing(listener, security=trusting, allowed=["localhost", "other.example"])

        assert await client.get(f"https://localhost:{listener.port}/") == Answer(200, b"hello")
        with pytest.raises(Unreachable):  # the certificate is for the address, and not for this name
            await client.get(f"https://other.example:{listener.port}/")

        assert listener.names == ["localhost", "other.example"]
        assert len(listener.requests) == 1


async def test_a_certificate_of_nobody_is_refused(certificates: Certificates) -> None:
    async with listening(security=server_of(certificates)) as listener:
        with pytest.raises(Unreachable):
            await outgoing(listener, allowed=["localhost"]).get(f"https://localhost:{listener.port}/")
        assert listener.requests == []


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
async def test_nobody_is_redirected(status: str) -> None:
    async with listening() as inside:
        answer = http(
            b"", status, f"location: http://127.0.0.1:{inside.port}/", "refresh: 0; url=http://127.0.0.1/"
        )
        async with listening(answer) as server:
            found = await outgoing(server, allowed=["localhost"]).post(f"http://localhost:{server.port}/", b"x")
        assert found.status == int(status[:3])
        assert inside.seen == 0


async def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as proxy, listening(http(b"hello")) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        client = outgoing(server, allowed=["localhost"])
        assert (await client.get(f"http://localhost:{server.port}/")).body == b"hello"
        assert proxy.seen == 0


async def test_an_answer_has_64_kib_and_no_more() -> None:
    async with (
        listening(http(b"x" * LARGEST_ANSWER)) as fits,
        listening(http(b"x" * (LARGEST_ANSWER + 1))) as large,
    ):
        found = await outgoing(fits, allowed=["localhost"]).get(f"http://localhost:{fits.port}/")
        assert len(found.body) == LARGEST_ANSWER
        with pytest.raises(Unreachable, match="more than 64 KiB"):
            await outgoing(large, allowed=["localhost"]).get(f"http://localhost:{large.port}/")


async def test_nothing_is_unpacked() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    async with listening(http(bomb, "200 OK", "content-encoding: gzip")) as server:
        found = await outgoing(server, allowed=["localhost"]).get(f"http://localhost:{server.port}/")
        assert found.body == bomb
        assert b"accept-encoding: identity" in server.requests[0].lower()


async def test_who_does_not_answer_is_not_waited_for() -> None:
    gone = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client has gone
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = Outgoing(allowed=[f"localhost:{port}"], resolve=resolve, deadline=0.1)
        with pytest.raises(Unreachable, match="did not answer"):
            await client.get(f"http://localhost:{port}/")
        await gone.wait()


async def test_a_name_server_that_does_not_answer_is_not_waited_for() -> None:
    async def never(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(Unreachable, match="did not answer"):
        await Outgoing(resolve=never, deadline=0.05).get("https://public.example/")


async def test_errors_and_answers_quote_nothing_that_was_answered() -> None:
    async with listening(b"SECRET of somebody inside\r\n\r\n") as server:
        with pytest.raises(Unreachable) as told:
            await outgoing(server, allowed=["localhost"]).get(f"http://localhost:{server.port}/")
    assert "SECRET" not in f"{told.value} {told.value.remedy}"
    assert "SECRET" not in repr(Answer(200, b"SECRET"))


def test_an_allowed_host_is_allowed_by_its_whole_name_and_port() -> None:
    client = Outgoing(allowed=["idp.internal", "hooks.internal:9000"])
    for url in (
        "https://idp.internal/",
        "http://idp.internal/",
        "http://IDP.internal:8443/",
        "http://hooks.internal:9000/",
    ):
        assert client.check(url).is_allowed
    for url in (
        "http://x.idp.internal/",
        "https://idp.internal:9000/",
        "http://hooks.internal/",
        "http://idp.internal.evil/",
    ):
        with pytest.raises(Refused):
            client.check(url)
    assert not client.check("https://hooks.internal/").is_allowed
