"""Drivers by the scheme of their URL, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from redrive.errors import ConfigurationError, MissingExtra


class Driver(NamedTuple):
    module: str
    name: str
    extra: str = ""
    """The extra that brings its client library, if one is needed."""


def load_driver(family: str, url: str, drivers: dict[str, Driver]) -> Any:
    """The driver's class. An unknown scheme or a missing extra is a ConfigurationError with its remedy."""
    scheme, _, _ = url.partition(":")
    if scheme not in drivers:
        known = ", ".join(f"{name}://" for name in drivers)
        # Of the URL only what was meant as its scheme is told: the rest may hold a password.
        told = f"{scheme}:" if scheme.isalnum() else "a URL without a known beginning"
        raise ConfigurationError(f"no {family} for {told}", remedy=f"use one of: {known}")
    driver = drivers[scheme]
    try:
        return getattr(import_module(driver.module), driver.name)
    except ModuleNotFoundError as missing:
        if not driver.extra:
            raise  # ours, or a package that Redrive always needs: no extra would bring it
        raise MissingExtra(scheme, driver.extra) from missing
