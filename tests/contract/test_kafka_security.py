"""A broker that wants TLS and a password: the whole way with the right ones, and each mistake told in words that
say what to do about it, in time and without a secret.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from redrive.errors import RedriveError, Unreachable
from redrive.testing.letters import a_message
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support import kafka_server
from support.certificates import make_certificates
from support.kafka_server import PrivateKafka

USER, PASSWORD, WRONG = "ann", "the-secret-of-ann", "no-secret-of-anybody"
WITHIN = 4.0
PLAIN = {"sasl.mechanism": "PLAIN"}


@pytest.fixture(scope="module")
def secured() -> Iterator[PrivateKafka]:
    server = kafka_server.own(users={USER: PASSWORD})
    yield server
    server.clean_up()


def opened(server: PrivateKafka, url: str, client: Mapping[str, str], **how: Any) -> KafkaTransport:
    plan = TopicPlan(partitions=1)
    return KafkaTransport(url, group=server.topic_name(), plan=plan, client=dict(client), **how)


@pytest.mark.parametrize("client", [{}, PLAIN], ids=["SCRAM-SHA-512", "PLAIN"])
async def test_with_user_password_and_authority_a_message_is_sent_received_retried_and_acknowledged(
    client: dict[str, str], secured: PrivateKafka
) -> None:
    url = f"kafkas://{USER}:{PASSWORD}@{secured.secure_address}"
    transport = opened(secured, url, {"ssl.ca.location": str(secured.authority), **client})
    message = a_message(queue=secured.topic_name())
    try:
        await transport.send(message)
        receiving = transport.receive(message.queue, prefetch=1)
        first = await anext(receiving)
        await transport.retry(first, first.message, delay=0.1, trail=b"")
        again = await anext(receiving)
        await transport.ack(again)
        await receiving.aclose()

        assert (again.message.id, again.message.body, again.attempt) == (message.id, message.body, 2)
        assert await transport.depths([message.queue]) == {}
    finally:
        await transport.close()


class Mistake(NamedTuple):
    url: str
    client: dict[str, str]
    said: str
    """Words of the error."""
    remedy: str


RIGHT, BAD, THERE = f"{USER}:{PASSWORD}@", f"{USER}:{WRONG}@", "{address}"
TRUST, DISTRUST = {"ssl.ca.location": "{authority}"}, {"ssl.ca.location": "{stranger}"}
MISTAKES = {
    "a wrong password": Mistake(f"kafkas://{BAD}{THERE}", TRUST, "invalid credentials", "user and password"),
    "a wrong password, said plainly": Mistake(
        f"kafkas://{BAD}{THERE}", TRUST | PLAIN, "Invalid username or password", "user and password"
    ),
    "a mechanism that they do not know": Mistake(
        f"kafkas://{RIGHT}{THERE}",
        TRUST | {"sasl.mechanism": "SCRAM-SHA-256"},
        "supported mechanisms: SCRAM-SHA-512,PLAIN",
        "sasl.mechanism",
    ),
    "an authority that is not theirs": Mistake(
        f"kafkas://{RIGHT}{THERE}", DISTRUST, "certificate verify failed", "ssl.ca.location"
    ),
    "no TLS": Mistake(f"kafka://{RIGHT}{THERE}", {}, "do not answer", "kafkas://"),
    "no password": Mistake(f"kafkas://{THERE}", TRUST, "do not answer", "user:password@"),
}


class Told(NamedTuple):
    error: RedriveError
    seconds: float


async def made(mistake: Mistake, server: PrivateKafka, **names: str) -> Told:
    client = {name: value.format(**names) for name, value in mistake.client.items()}
    transport = opened(server, mistake.url.format(**names), client, connect_timeout=WITHIN)
    began = time.monotonic()
    try:
        with pytest.raises(RedriveError) as raised:
            await transport.send(a_message(queue=server.topic_name()))
        return Told(raised.value, time.monotonic() - began)
    finally:
        await transport.close()


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.getMessage()}\n"


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    """All that librdkafka says."""
    client, listening = logging.getLogger("redrive.kafka.client"), Log()
    client.addHandler(listening)
    yield listening
    client.removeHandler(listening)


@pytest.fixture(scope="module")
def told(secured: PrivateKafka, log: Log, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """What is said of each mistake. All are made at once, since each takes as long as connecting may."""
    assert not log.text
    stranger = make_certificates(tmp_path_factory.mktemp("stranger")).authority
    names = {
        "address": secured.secure_address,
        "authority": str(secured.authority),
        "stranger": str(stranger),
    }

    async def all_of_them() -> list[Told]:
        return await asyncio.gather(*(made(each, secured, **names) for each in MISTAKES.values()))

    return dict(zip(MISTAKES, asyncio.run(all_of_them()), strict=True))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_time_with_its_remedy_and_without_a_secret(name: str, told: dict[str, Told]) -> None:
    error, mistake = told[name].error, MISTAKES[name]

    assert isinstance(error, Unreachable)  # somebody may be about to mend it
    assert mistake.said in str(error)
    assert mistake.remedy in (error.remedy or "")
    assert told[name].seconds < 2 * WITHIN
    for secret in (PASSWORD, WRONG):
        assert secret not in f"{error} {error.remedy} {error!r}"


@pytest.mark.usefixtures("told")
def test_what_librdkafka_logs_of_all_that_has_no_secret_in_it(log: Log) -> None:
    assert "SASL authentication error" in log.text
    assert not [secret for secret in (PASSWORD, WRONG) if secret in log.text]
