"""The tests' own RabbitMQ does what the tests that need it take for granted."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support import rabbitmq_server
from support.rabbitmq_server import PrivateRabbit, RabbitServer, vhost_of

GREETING = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = b"\x01"


def amqp(program: str, url: str, *arguments: str, standard_input: str = "") -> str:
    """What a program of Debian's amqp-tools says."""
    if shutil.which(program) is None:
        missing = f"no {program} here: apt-get install amqp-tools"
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    command = [program, f"--url={url}", *arguments]
    done = subprocess.run(command, input=standard_input, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def put_one(url: str, body: str) -> None:
    amqp("amqp-declare-queue", url, "--queue=orders", "--durable")
    amqp("amqp-publish", url, "--routing-key=orders", "--persistent", f"--body={body}")


def put_one_confirmed(server: RabbitServer, body: str) -> None:
    """On disk when this returns, which amqp-publish does not wait for."""
    amqp("amqp-declare-queue", server.url, "--queue=orders", "--durable")
    message = {"routing_key": "orders", "payload": body, "payload_encoding": "string"}
    path = "/exchanges/%2F/amq.default/publish"
    assert server.api("POST", path, message | {"properties": {"delivery_mode": 2}}) == {"routed": True}


def test_every_test_has_a_virtual_host_of_its_own(rabbitmq: RabbitServer, rabbitmq_url: str) -> None:
    other = rabbitmq.new_vhost()
    put_one(rabbitmq_url, "mine")
    assert [queue["name"] for queue in rabbitmq.queues(vhost_of(rabbitmq_url))] == ["orders"]
    assert rabbitmq.queues(vhost_of(other)) == []
    rabbitmq.drop_vhost(other)
    assert vhost_of(other) not in [vhost["name"] for vhost in rabbitmq.api("GET", "/vhosts")]


def test_a_durable_message_outlives_a_kill_of_the_node(own_rabbitmq: PrivateRabbit) -> None:
    put_one_confirmed(own_rabbitmq, "keep me")
    own_rabbitmq.sync()
    before = own_rabbitmq.pid
    own_rabbitmq.kill()
    assert before is not None
    assert not Path(f"/proc/{before}").exists()
    own_rabbitmq.start()
    assert amqp("amqp-get", own_rabbitmq.url, "--queue=orders") == "keep me"


def test_a_durable_message_outlives_an_orderly_restart(own_rabbitmq: PrivateRabbit) -> None:
    put_one(own_rabbitmq.url, "keep me")
    own_rabbitmq.restart()
    assert amqp("amqp-get", own_rabbitmq.url, "--queue=orders") == "keep me"


def test_the_next_test_finds_nothing_of_the_one_before(own_rabbitmq: PrivateRabbit) -> None:
    put_one(own_rabbitmq.url, "forget me")
    own_rabbitmq.api("PUT", "/users/somebody", {"password": "secret", "tags": ""})
    own_rabbitmq.ctl("eval", "application:set_env(rabbit, consumer_timeout, 1000).")
    own_rabbitmq.renew()
    assert own_rabbitmq.queues() == []
    assert [user["name"] for user in own_rabbitmq.api("GET", "/users")] == ["guest"]
    assert own_rabbitmq.ctl("eval", "application:get_env(rabbit, consumer_timeout).").strip() != "{ok,1000}"


def test_the_node_speaks_amqp_through_tls_to_whom_trusts_its_authority(own_rabbitmq: PrivateRabbit) -> None:
    assert own_rabbitmq.certificates is not None
    trusting = ssl.create_default_context(cafile=str(own_rabbitmq.certificates.authority))
    assert greeted(own_rabbitmq.tls_url, trusting) == METHOD_FRAME
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(own_rabbitmq.tls_url, ssl.create_default_context())


def greeted(url: str, context: ssl.SSLContext) -> bytes:
    """The first byte of what the broker answers to a greeting."""
    where = urlsplit(url)
    assert where.hostname
    with (
        socket.create_connection((where.hostname, where.port or 0)) as plain,
        context.wrap_socket(plain, server_hostname=where.hostname) as secret,
    ):
        secret.sendall(GREETING)
        return secret.recv(1)


def test_a_node_takes_further_lines_of_configuration_and_leaves_nothing_behind() -> None:
    server = rabbitmq_server.own(configuration=["consumer_timeout = 1234567"])
    try:
        assert server.ctl("eval", "application:get_env(rabbit, consumer_timeout).").strip() == "{ok,1234567}"
        assert server._port_mapper is not None
        left = [Path(f"/proc/{server.pid}"), Path(f"/proc/{server._port_mapper.pid}"), server._folder]
    finally:
        server.clean_up()
    assert [path for path in left if path.exists()] == []
