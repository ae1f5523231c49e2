"""Drivers by the scheme of their URL, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from redrive.errors import ConfigurationError, MissingExtra


class Driver(NamedTuple):
    module: str
    name: str
    extra: str = ""
    """The extra that brings its client library, if one is needed."""


def load_driver(family: str, url: str, drivers: dict[str, Driver]) -> Any:
    """The driver's class. An unknown scheme or a missing extra is a ConfigurationError with its remedy."""
    scheme = urlsplit(url).scheme
    if scheme not in drivers:
        known = ", ".join(f"{name}://" for name in drivers)
        raise ConfigurationError(f"no {family} for {scheme or url!r}", remedy=f"use one of: {known}")
    driver = drivers[scheme]
    try:
        return getattr(import_module(driver.module), driver.name)
    except ModuleNotFoundError as missing:
        raise MissingExtra(scheme, driver.extra or scheme) from missing
