"""Settings of metrics: see `redrive.settings`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from redrive.section import Section
from redrive.setting_values import OptionalSecret, unset
from redrive.telemetry.address import Address


def _address(value: Any) -> Any:
    if value is not None:
        Address.parse(value if isinstance(value, str) else "")
    return value


class MetricsSettings(Section):
    """What Prometheus is told. `redrive serve` tells it at /metrics of its own port."""

    listen: Annotated[str | None, BeforeValidator(_address), BeforeValidator(unset)] = None
    """Where workers, collectors and engines tell theirs, such as "127.0.0.1:9464-9479": each process takes the
    first port that is free, and one that finds none tells nothing and works. None: nowhere.
    """
    token: OptionalSecret = None
    """Whoever asks has to have it. None: anybody who can reach the port may ask."""
