"""A RabbitMQ of the tests' own: a node in a temporary folder, on free loopback ports, gone with the tests.

It has its own Erlang port mapper, cookie, plugins and configuration, so nothing of the machine's is touched.

`REDRIVE_TEST_RABBITMQ=amqp://...` names an existing server instead, with its management plugin on port 15672 or
where `REDRIVE_TEST_RABBITMQ_MANAGEMENT=http://...` says; its user must be an administrator, and the tests that
stop the server are then skipped.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from uuid import uuid4

import pytest

from support.certificates import Certificates, make_certificates
from support.in_memory import folder_in_memory
from support.loopback_ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

EXISTING = "REDRIVE_TEST_RABBITMQ"
EXISTING_MANAGEMENT = "REDRIVE_TEST_RABBITMQ_MANAGEMENT"
PLUGINS = ("rabbitmq_management",)
_PATIENCE = 120.0
_LOOK_EVERY = 0.05
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_FEW_THREADS = "+S 2:2 +SDcpu 1:1 +SDio 2 +A 2"
_NO_SPINNING = (
    "+sbwt none +sbwtdcpu none +sbwtdio none"  # an idle scheduler sleeps and leaves the processor to the tests
)
_SOON_COUNTED = "-rabbit quorum_tick_interval 500"  # milliseconds until the figures of a quorum queue are new
_PERMISSIONS = {"configure": ".*", "write": ".*", "read": ".*"}
_CONFIGURATION = """
listeners.tcp.1 = 127.0.0.1:{amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = {management}
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 50MB
collect_statistics_interval = 500
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.minute = 1
log.file.level = info
"""
_TLS_CONFIGURATION = """
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {made.authority}
ssl_options.certfile = {made.certificate}
ssl_options.keyfile = {made.key}
ssl_options.verify = verify_none
"""


_starter = ThreadPoolExecutor(1)


class RabbitServer:
    """A server that the tests may ask for virtual hosts, whoever started it."""

    def __init__(self, base: str, management_url: str) -> None:
        self._base = urlsplit(base)
        self.management_url = management_url
        self._made: list[str] = []

    @property
    def url(self) -> str:
        """Of the virtual host "/", written so that every client understands it."""
        return self.url_of("/")

    def url_of(self, vhost: str) -> str:
        return urlunsplit(self._base._replace(path=f"/{quote(vhost, safe='')}"))

    def new_vhost(self) -> str:
        """The URL of a new, empty virtual host."""
        name = f"redrive_test_{uuid4().hex[:12]}"
        self._make_vhost(name)
        self._made.append(name)
        return self.url_of(name)

    def drop_vhost(self, url: str) -> None:
        """With everything in it; its connections are closed."""
        name = vhost_of(url)
        self._made.remove(name)
        self.api("DELETE", f"/vhosts/{quote(name, safe='')}")

    def queues(self, vhost: str = "/") -> list[dict[str, Any]]:
        """As the management plugin shows them, with `messages`, `messages_ready` and `messages_unacknowledged` at
        most half a second old. Rates and consumers, which are older, are not in it.
        """
        now = "disable_stats=true&enable_queue_totals=true"
        found: list[dict[str, Any]] = self.api("GET", f"/queues/{quote(vhost, safe='')}?{now}")
        return found

    def api(self, method: str, path: str, body: object = None) -> Any:
        """One question to the management plugin: the path below /api, the answer decoded."""
        status, answer = self._ask(method, path, body)
        assert status < 400, f"{method} {path}: {status} {answer.decode(errors='replace')}"
        return json.loads(answer) if answer else None

    def clean_up(self) -> None:
        for name in list(self._made):
            self.drop_vhost(self.url_of(name))

    def _make_vhost(self, name: str) -> None:
        user = quote(unquote(self._base.username or "guest"), safe="")
        self.api("PUT", f"/vhosts/{quote(name, safe='')}", {})
        self.api("PUT", f"/permissions/{quote(name, safe='')}/{user}", _PERMISSIONS)

    def _ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        where = urlsplit(self.management_url)
        connection = HTTPConnection(where.hostname or "127.0.0.1", where.port or 15672, timeout=_PATIENCE)
        with contextlib.closing(connection):
            written = None if body is None else json.dumps(body)
            connection.request(method, f"/api{path}", written, {"Authorization": self._credentials()})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _credentials(self) -> str:
        user, password = unquote(self._base.username or "guest"), unquote(self._base.password or "guest")
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class PrivateRabbit(RabbitServer):
    """A node of our own, which a test may stop, start and kill. It keeps its ports and its data.

    `configuration` are further lines of rabbitmq.conf. With `tls` there is `tls_url` too, and the file of the
    authority to trust is `certificates.authority`. `root`: of the system whose RabbitMQ it is, in which paths mean
    what they mean here (`support.debian_13`). `plugins` are enabled beside PLUGINS.
    """

    def __init__(
        self,
        *,
        configuration: Sequence[str] = (),
        tls: bool = False,
        root: Path | None = None,
        plugins: tuple[str, ...] = (),
    ) -> None:
        self._root = root
        self._plugins = plugins
        self._scripts = _scripts(root or Path("/"))
        place = folder_in_memory() if root is None else root / "tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="redrive-rabbit-", dir=place))
        self._amqp, self._management, self._distribution, self._mapper, self._tls, self._ctl = free_ports(6)
        super().__init__(f"amqp://guest:guest@127.0.0.1:{self._amqp}/", f"http://127.0.0.1:{self._management}")
        self.certificates: Certificates | None = make_certificates(self._folder / "tls") if tls else None
        self._environment = self._make(configuration)
        self._node: subprocess.Popen[bytes] | None = None
        self._port_mapper: subprocess.Popen[bytes] | None = None
        self._was_told = False
        self.start()

    @property
    def tls_url(self) -> str:
        """Of the virtual host "/" through TLS; the certificate is for localhost and 127.0.0.1."""
        assert self.certificates is not None, "this node was made without TLS"
        return f"amqps://guest:guest@localhost:{self._tls}/%2F"

    @property
    def log(self) -> str:
        files = [file for file in sorted((self._folder / "log").glob("*")) if file.is_file()]
        return "\n".join(file.read_text(errors="replace") for file in files)

    @property
    def pid(self) -> int | None:
        """Of the node's process, while it runs."""
        return None if self._node is None else self._node.pid

    def start(self) -> None:
        """Does nothing if it runs; comes back when the node takes connections and its management answers."""
        if self._port_mapper is None:
            self._port_mapper = self._start_port_mapper()
        if self._node is None or self._node.poll() is not None:
            self._node = self._spawn(self._scripts / "rabbitmq-server")
        deadline = time.monotonic() + _PATIENCE
        while not self._is_ready():
            assert self._node.poll() is None, f"RabbitMQ ended while it started:\n{self.log}"
            assert time.monotonic() < deadline, f"RabbitMQ does not start:\n{self.log}"
            time.sleep(_LOOK_EVERY)

    def stop(self) -> None:
        """The orderly way: connections are closed, queues written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a power cut of the server's process: no shutdown, and recovery from the files at the next start."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def sync(self) -> None:
        """Comes back when all that was declared is on disk. RabbitMQ answers before that: a durable queue, with
        what was confirmed in it, may be gone if the node is killed a few hundredths of a second later.
        """
        assert self._ctl_says("eval", "mnesia:sync_log().").strip() == "ok"

    def ctl(self, *arguments: str) -> str:
        """What rabbitmqctl says. It takes seconds: a look at the queues is quicker through `api`."""
        self._was_told = True
        return self._ctl_says(*arguments)

    def _ctl_says(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command(self._scripts / "rabbitmqctl"), "--quiet", *arguments],
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"rabbitmqctl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def renew(self) -> None:
        """Runs as a new node does: no queue, user, policy or setting of an earlier test is left."""
        if self._was_told:
            self.kill()
            self._was_told = False
        self.start()
        for vhost in self.api("GET", "/vhosts"):
            self.api("DELETE", f"/vhosts/{quote(vhost['name'], safe='')}")
        for user in self.api("GET", "/users"):
            if user["name"] != "guest":
                self.api("DELETE", f"/users/{quote(user['name'], safe='')}")
        self._made.clear()
        self._make_vhost("/")

    def clean_up(self) -> None:
        self.kill()
        if self._port_mapper is not None:
            self._port_mapper.kill()
            self._port_mapper.wait(timeout=_PATIENCE)
            self._port_mapper = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, configuration: Sequence[str]) -> dict[str, str]:
        lines = [_CONFIGURATION.format(amqp=self._amqp, management=self._management), *configuration]
        if self.certificates is not None:
            lines.append(_TLS_CONFIGURATION.format(port=self._tls, made=self.certificates))
        (self._folder / "rabbitmq.conf").write_text("\n".join([*lines, ""]))
        (self._folder / "enabled_plugins").write_text(f"[{','.join(PLUGINS + self._plugins)}].\n")
        (self._folder / "environment.conf").write_text("")
        (self._folder / "log").mkdir()
        cleared = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        cleared.pop("NOTIFY_SOCKET", None)
        return cleared | self._settings()

    def _settings(self) -> dict[str, str]:
        folder = self._folder
        return {
            "HOME": str(folder),  # of the Erlang cookie
            "ERL_EPMD_PORT": str(self._mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the node and leaves no shell beside it
            # A host's own name may not resolve; this one does everywhere.
            "RABBITMQ_NODENAME": f"{folder.name}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._amqp),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(self._ctl),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(self._ctl + 20),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PLUGINS_EXPAND_DIR": str(folder / "plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"{_FEW_THREADS} {_NO_SPINNING} {_SOON_COUNTED} -kernel inet_dist_use_interface {{127,0,0,1}}"
            ),
            "RABBITMQ_CTL_ERL_ARGS": f"+S 1:1 {_NO_SPINNING}",
        }

    def _start_port_mapper(self) -> subprocess.Popen[bytes]:
        """Before the node, which would start one that outlives it."""
        here = f"{os.environ.get('PATH', '')}:/usr/bin:/usr/lib/erlang/bin"
        program = shutil.which("epmd", path=here if self._root is None else str(self._root / "usr/bin"))
        assert program is not None, "RabbitMQ is here, but Erlang's epmd is not"
        started = self._spawn(Path(program))
        deadline = time.monotonic() + _PATIENCE
        while not _answers(self._mapper):
            assert started.poll() is None, f"epmd ended while it started:\n{self.log}"
            assert time.monotonic() < deadline, "epmd does not start"
            time.sleep(_LOOK_EVERY)
        return started

    def _spawn(self, program: Path) -> subprocess.Popen[bytes]:
        """From a thread that lives as long as the tests: Linux ends the child with the thread that started it, and
        that of a test's event loop ends with the test.
        """
        return _starter.submit(self._spawned, program).result()

    def _spawned(self, program: Path) -> subprocess.Popen[bytes]:
        with (self._folder / "log" / f"{program.name}.output").open("ab") as output:
            return subprocess.Popen(
                self._command(program),
                env=self._environment,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then stops us
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509  a killed pytest runs no finalizer
            )

    def _command(self, program: Path) -> list[str | Path]:
        """How it is called; in another system, by the name it has there."""
        return [program] if self._root is None else ["chroot", self._root, "/" / program.relative_to(self._root)]

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, HTTPException):
            return _answers(self._amqp) and self._ask("GET", "/overview")[0] == 200
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._node is not None:
            self._node.send_signal(how)
            self._node.wait(timeout=_PATIENCE)
            self._node = None


def available() -> RabbitServer:
    """The server for this session's tests; skips (fails with CI=true) where there is none."""
    existing = os.environ.get(EXISTING)
    if not existing:
        return PrivateRabbit()
    standard = f"http://{urlsplit(existing).hostname}:15672"
    return RabbitServer(existing, os.environ.get(EXISTING_MANAGEMENT, standard))


def own(*, configuration: Sequence[str] = (), tls: bool = False) -> PrivateRabbit:
    """A second node, for tests that stop it or set it up differently."""
    if os.environ.get(EXISTING):
        pytest.skip(f"{EXISTING} names a server that tests do not stop")
    return PrivateRabbit(configuration=configuration, tls=tls)


def vhost_of(url: str) -> str:
    return unquote(urlsplit(url).path.removeprefix("/"))


def _scripts(root: Path) -> Path:
    """Where the server's own scripts are: Debian's in /usr/sbin change the user."""
    packages = root / "usr/lib/rabbitmq/lib"
    packaged = sorted(packages.glob("rabbitmq_server-*/sbin"), key=_version, reverse=True)
    found = shutil.which("rabbitmq-server")
    for folder in [*packaged, *([Path(found).resolve().parent] if found else [])]:
        if (folder / "rabbitmq-server").exists() and (folder / "rabbitmq-env").exists():
            return folder
    missing = f"no RabbitMQ here: apt-get install rabbitmq-server, or set {EXISTING}=amqp://..."
    if os.environ.get("CI") == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def _version(scripts: Path) -> list[int]:
    return [int(part) for part in scripts.parent.name.rpartition("-")[2].split(".") if part.isdigit()]


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


def _die_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
