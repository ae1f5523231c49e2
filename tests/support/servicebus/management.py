"""What can be asked of an entity's `$management` node in the emulator: the operations that the SDK uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proton import UNDESCRIBED, Array, Data, Message, int32, timestamp

from support.servicebus import sections
from support.servicebus.entity import Entity, Outcome
from support.servicebus.intake import check_sessions, put
from support.servicebus.refusals import NOT_ALLOWED, NOT_FOUND, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.servicebus.emulator import ServiceBusEmulator
    from support.servicebus.held import Held

_PREFIX = "com.microsoft:"
_DISPOSITIONS = {
    "completed": "completed",
    "abandoned": "abandoned",
    "defered": "deferred",  # the wire's own spelling
    "suspended": "dead-lettered",
}
_SETTLED_ON_RECEIPT = 0

Answer = dict[str, Any] | None


def perform(emulator: ServiceBusEmulator, path: str, request: Message) -> Answer:
    """The answer's body; None: there is nothing to give. Raises Refusal."""
    told: dict[str, Any] = request.properties  # type: ignore[assignment]  # proton says None and means a map
    operation = str(told["operation"]).removeprefix(_PREFIX)
    body: Any = request.body
    if operation == "schedule-message":
        return _schedule(emulator, path, body)
    if operation == "cancel-scheduled-message":
        entity = emulator.namespace.sendable(path)
    else:
        entity = emulator.namespace.receivable(path)
    if entity is None:
        raise Refusal(NOT_FOUND, f"the messaging entity {path!r} could not be found")
    if operation not in _OPERATIONS:
        raise Refusal(NOT_ALLOWED, f"the emulator does not know the operation {operation!r}")
    return _OPERATIONS[operation](entity, body)


def _schedule(emulator: ServiceBusEmulator, path: str, body: Any) -> Answer:
    entity = emulator.namespace.sendable(path)
    if entity is None:
        raise Refusal(NOT_FOUND, f"the messaging entity {path!r} could not be found")
    contents = [sections.read(bytes(each["message"])) for each in body["messages"]]
    check_sessions(entity, contents)
    numbers = [put(emulator.namespace, path, content) for content in contents]
    return {"sequence-numbers": _array(Data.LONG, numbers)}


def _cancel(entity: Entity, body: Any) -> Answer:
    entity.cancel(int(number) for number in body["sequence-numbers"])
    return {}


def _peek(entity: Entity, body: Any) -> Answer:
    found = entity.peek(int(body["from-sequence-number"]), int(body["message-count"]), body.get("session-id"))
    return {"messages": [{"message": held.encoded()} for held in found]} if found else None


def _receive_deferred(entity: Entity, body: Any) -> Answer:
    found = entity.take_deferred(int(number) for number in body["sequence-numbers"])
    answer = {"messages": [_with_token(held) for held in found]}
    if body.get("receiver-settle-mode") == _SETTLED_ON_RECEIPT:
        for held in found:
            entity.remove(held)
    return answer


def _with_token(held: Held) -> dict[str, Any]:
    assert held.lock is not None
    return {"message": held.encoded(), "lock-token": held.lock.token}


def _renew(entity: Entity, body: Any) -> Answer:
    moments = [_moment(entity.renew(token)) for token in body["lock-tokens"]]
    return {"expirations": _array(Data.TIMESTAMP, moments)}


def _settle(entity: Entity, body: Any) -> Answer:
    what = _DISPOSITIONS[str(body["disposition-status"])]
    outcome = Outcome(what, body.get("deadletter-reason"), body.get("deadletter-description"))
    for token in body["lock-tokens"]:
        entity.settle(token, outcome)
    return {}


def _renew_session(entity: Entity, body: Any) -> Answer:
    return {"expiration": _moment(entity.sessions.renew(body["session-id"]))}


def _get_state(entity: Entity, body: Any) -> Answer:
    return {"session-state": entity.sessions.states.get(body["session-id"])}


def _set_state(entity: Entity, body: Any) -> Answer:
    state = body["session-state"]
    entity.sessions.set_state(body["session-id"], None if state is None else bytes(state))
    return {}


def _list_sessions(entity: Entity, body: Any) -> Answer:
    skip, top = int(body["skip"]), int(body["top"])
    found = entity.session_ids()[skip : skip + top]
    return {"skip": int32(skip + len(found)), "sessions-ids": found} if found else None


def _array(kind: int, values: Sequence[int]) -> Array:
    plain: Any = UNDESCRIBED
    return Array(plain, kind, *values)


def _moment(seconds: float) -> timestamp:
    return timestamp(int(seconds * 1000))


_OPERATIONS: dict[str, Callable[[Entity, Any], Answer]] = {
    "cancel-scheduled-message": _cancel,
    "peek-message": _peek,
    "receive-by-sequence-number": _receive_deferred,
    "renew-lock": _renew,
    "update-disposition": _settle,
    "renew-session-lock": _renew_session,
    "get-session-state": _get_state,
    "set-session-state": _set_state,
    "get-message-sessions": _list_sessions,
}
