"""Settings of traces; where they go, the standard variables OTEL_* say."""

from __future__ import annotations

from redrive.section import Section
from redrive.setting_values import OptionalShare


class TracingSettings(Section):
    enabled: bool = False
    """Needs `redrive[otel]`."""
    sample_ratio: OptionalShare = None
    """The share of traces that are kept, of those that begin here; of others whoever began them has decided. None:
    as OTEL_TRACES_SAMPLER says, else all.
    """
