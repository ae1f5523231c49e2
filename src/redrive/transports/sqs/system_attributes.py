"""What SQS itself keeps beside body and attributes, and takes again with a copy: the group, which a standard queue
has for fair turns, and the trace of X-Ray. Neither counts for the size of a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.transports.sqs.attributes import text
from redrive.transports.sqs.fifo import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP, DEDUPLICATION = "MessageGroupId", "MessageDeduplicationId"
_TRACE = "AWSTraceHeader"


def again(system: Mapping[str, str], key: bytes | None) -> dict[str, Any]:
    """For a copy of what came with these; `key`: of the copy. A group that is no longer its key's stays behind."""
    told: dict[str, Any] = {}
    if trace := system.get(_TRACE):
        told["MessageSystemAttributes"] = {_TRACE: text(trace)}
    group = system.get(GROUP)
    if group and key_of(group) == key:
        told[GROUP] = group
    return told


def key_told(entry: Mapping[str, Any]) -> bytes | None:
    """Of a message that is sent so, for whoever receives it without a note."""
    return key_of(entry[GROUP]) if GROUP in entry else None
