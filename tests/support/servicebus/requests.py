"""The emulator's nodes that are asked and answer with messages: `$cbs`, and each entity's `$management`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from proton import Delivery, Message, int32, symbol

from support.servicebus import management
from support.servicebus.faults import Point
from support.servicebus.links import LinkEnd
from support.servicebus.refusals import UNAUTHORIZED, Refusal

if TYPE_CHECKING:
    from support.servicebus.connection import EmulatedConnection

CBS, MANAGEMENT = "$cbs", "$management"
NODES = (CBS, MANAGEMENT)
_OK, _ACCEPTED, _NO_CONTENT = 200, 202, 204
TOKEN = "a token of Entra ID, as far as the emulator knows"  # noqa: S105  of nobody


class Responses(LinkEnd):
    """Where the answers go: to the link of the same session from the same node."""

    def __init__(self, link: Any, path: str) -> None:
        self._link = link
        self.path = path
        self._sent = 0

    def is_for(self, requests: Any, path: str) -> bool:
        return self.path == path and bool(self._link.session == requests.session)

    def send(self, answer: Message) -> None:
        self._sent += 1
        delivery = self._link.delivery(self._sent.to_bytes(4))
        self._link.stream(bytes(answer.encode()))
        self._link.advance()
        delivery.settle()


class Requests(LinkEnd):
    def __init__(self, connection: EmulatedConnection, link: Any, path: str) -> None:
        self._connection = connection
        self._link = link
        self._path = path

    def received(self, delivery: Any, encoded: bytes) -> None:
        self._connection.formats.next_of(self._link.name)
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        request = Message()
        request.decode(encoded)
        if self._path == CBS:
            self._connection.perform(
                Point.TOKEN, partial(_check_token, request), partial(self._answer_token, request)
            )
        else:
            entity = self._path.removesuffix(MANAGEMENT).strip("/")
            act = partial(management.perform, self._connection.emulator, entity, request)
            self._connection.perform(Point.MANAGE, act, partial(self._answer, request))

    def _answer_token(self, request: Message, result: Refusal | None) -> None:
        status = _ACCEPTED if result is None else result.status
        text = "Accepted" if result is None else result.text
        self._send(request, {"status-code": int32(status), "status-description": text}, None)

    def _answer(self, request: Message, result: dict[str, Any] | Refusal | None) -> None:
        if isinstance(result, Refusal):
            told = {"statusCode": int32(result.status), "statusDescription": result.text}
            self._send(request, {**told, "errorCondition": symbol(result.condition)}, None)
        elif result is None:
            self._send(request, {"statusCode": int32(_NO_CONTENT), "statusDescription": "No Content"}, None)
        else:
            self._send(request, {"statusCode": int32(_OK), "statusDescription": "OK"}, result)

    def _send(self, request: Message, told: dict[str, Any], body: Any) -> None:
        answer = Message(body=body, properties=told, correlation_id=request.id)
        for end in self._connection.ends.values():
            if isinstance(end, Responses) and end.is_for(self._link, self._path):
                end.send(answer)


def _check_token(request: Message) -> None:
    """The emulator takes every token that is a shared access signature, and one of Entra ID."""
    if not str(request.body).startswith(("SharedAccessSignature ", TOKEN)):
        raise Refusal(UNAUTHORIZED, "this is neither a shared access signature nor a token that is known")
