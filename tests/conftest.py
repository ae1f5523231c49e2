"""No test depends on how fast the machine is: hypothesis would otherwise measure every example."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
