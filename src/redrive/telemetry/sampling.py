"""What can be known of a message's trace before any span is begun: that nobody will be told of it.

Where one trace in a hundred is sampled, ninety-nine spans are begun only to say so, and each costs the SDK a good
part of what a whole message costs us. Its samplers decide by two things that are there before: by the flag in
`traceparent`, or, where a trace begins here, by its trace id. So the id is drawn first, and given to the SDK only
if somebody is told of the trace, or asks for its id.
"""

from __future__ import annotations

import random
import re
import threading
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, ParentBasedTraceIdRatio, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan

from redrive.headers import header

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span, SpanContext

    from redrive.message import Headers

_PARENT = "traceparent"
_NOT_SAMPLED = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f][02468ace]")
_THE_SDKS_OWN = {ParentBased, ParentBasedTraceIdRatio}
_FOLLOWING = re.compile(
    r"ParentBased\{root:(?:AlwaysOnSampler|TraceIdRatioBased\{(?P<ratio>[0-9.e-]{1,30})\}),"
    r"remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"
    r"localParentSampled:AlwaysOnSampler,localParentNotSampled:AlwaysOffSampler\}"
)
"""How the SDK's samplers describe themselves that decide as the parent did."""


class KnownTraceIds(RandomIdGenerator):
    """As the SDK's own, but that the next one can be said beforehand, by the thread that will ask for it."""

    def __init__(self) -> None:
        self._said = threading.local()

    def say(self, trace_id: int) -> None:
        self._said.next = trace_id

    def generate_trace_id(self) -> int:
        said: int | None = self._said.__dict__.pop("next", None)
        return super().generate_trace_id() if said is None else said


class Foresight:
    """Of a sampler that decides as the parent did. `bound`: of traces that begin here, those with ids below it are
    sampled; None: nothing is known of these.
    """

    def __init__(self, ids: KnownTraceIds | None, bound: int | None) -> None:
        self._ids = ids
        self._bound = bound

    @classmethod
    def of(cls, provider: object) -> Foresight | None:
        """None: its sampler is one of which nothing can be foreseen."""
        if not isinstance(provider, TracerProvider) or type(provider.sampler) not in _THE_SDKS_OWN:
            return None
        found = _FOLLOWING.fullmatch(provider.sampler.get_description())
        if found is None:
            return None
        ids = provider.id_generator
        ours = ids if isinstance(ids, KnownTraceIds) else None
        ratio = found["ratio"]
        bound = None if ratio is None else TraceIdRatioBased.get_bound_for_rate(float(ratio))
        return cls(ours, None if ours is None else bound)

    def look(self, headers: Headers) -> tuple[bool, int | None]:
        """Whether nobody will be told of it, and the id of the trace that begins with it, if it was drawn."""
        said = header(headers, _PARENT) if headers else None
        if said is not None:
            return isinstance(said, str) and _NOT_SAMPLED.fullmatch(said) is not None, None
        if self._bound is None:
            return False, None
        trace_id = random.getrandbits(128) or 1  # as the SDK draws its own; zero is no id
        return trace_id & TraceIdRatioBased.TRACE_ID_LIMIT >= self._bound, trace_id

    def say(self, trace_id: int | None) -> None:
        """The next trace that this thread begins has this id."""
        if self._ids is not None and trace_id is not None:
            self._ids.say(trace_id)


class Dropped(NonRecordingSpan):
    """A span that nobody is told of, and that is begun only if somebody asks for its ids: a line of the log, or
    what the handler traces itself.
    """

    def __init__(self, begin: Callable[[], Span]) -> None:
        self._begin = begin
        self._begun: Span | None = None

    def get_span_context(self) -> SpanContext:
        if self._begun is None:
            self._begun = self._begin()
        return self._begun.get_span_context()
