from __future__ import annotations

import pytest

from redrive.errors import ConfigurationError, MissingExtra
from redrive.registry import Driver, load_driver

DRIVERS = {
    "here": Driver("datetime", "timedelta"),
    "extra": Driver("redrive_has_no_such_module", "Thing", extra="thing"),
    "broken": Driver("redrive_has_no_such_module", "Thing"),
}


def test_a_driver_is_found_by_the_scheme_of_its_url() -> None:
    assert load_driver("store", "here:///some/file", DRIVERS).__name__ == "timedelta"


@pytest.mark.parametrize(
    "url", ["there://x", "", "some/file.db", "//user:SECRET@host/db", "SECRET@host://[x", "HERE:"]
)
def test_an_unknown_scheme_is_refused_with_the_known_ones_and_without_the_rest_of_the_url(url: str) -> None:
    with pytest.raises(ConfigurationError, match="no store for") as refused:
        load_driver("store", url, DRIVERS)
    assert refused.value.remedy == "use one of: here://, extra://, broken://"
    assert "SECRET" not in str(refused.value)


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match="extra://") as missing:
        load_driver("transport", "extra://host", DRIVERS)
    assert missing.value.remedy == "pip install 'redrive[thing]'"
    assert missing.value.exit_code == 2


def test_a_module_that_no_extra_would_bring_is_not_blamed_on_one() -> None:
    with pytest.raises(ModuleNotFoundError, match="redrive_has_no_such_module"):
        load_driver("store", "broken://host", DRIVERS)
