"""The tables of `make mutants` fit the source: whoever changes what a mutant breaks adapts the mutant too."""

from __future__ import annotations

from pathlib import Path

import pytest

import redrive
from mutants.mutant import Mutant
from mutants.tables import MUTANTS

SOURCE = Path(redrive.__file__).parent
TESTS = Path(__file__).parents[1]
SHIPPED = "".join(file.read_text() for file in (SOURCE / "testing").glob("*contract*.py"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_breaks_is_in_the_source_once(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.new != mutant.old


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_must_notice_a_mutant_exists(mutant: Mutant) -> None:
    assert mutant.tests
    for each in mutant.tests:
        file, *names = each.split("::")
        text = (TESTS / file).read_text() + SHIPPED
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), each


def test_every_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
