from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import redrive


def test_every_public_name_loads_and_is_what_its_home_calls_so() -> None:
    for name in redrive.__all__:
        value = getattr(redrive, name)
        assert getattr(value, "__name__", name) == name
        assert value.__module__.startswith("redrive.")


def test_the_names_of_the_design_are_there() -> None:
    wanted = {
        *("App", "Message", "Delivery", "Failure", "FailureKind", "FailurePolicy", "DeadLetter", "FailureGroup"),
        *("Retry", "exponential", "linear", "fixed", "explicit", "Transient", "Permanent", "Drop"),
        *("execute_with_retry", "Status", "caused_by", "RedriveError"),
    }
    assert wanted <= set(redrive.__all__)


def test_a_star_import_gives_exactly_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from redrive import *", names)  # noqa: S102  what a person may write
    assert set(names) - {"__builtins__"} == set(redrive.__all__)


def test_what_type_checkers_see_is_what_there_is() -> None:
    tree = ast.parse(Path(redrive.__file__).read_text())
    seen = {
        alias.asname: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
    assert seen == redrive._HOMES


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Massage'"):
        _ = redrive.Massage
    with pytest.raises(ImportError):
        exec("from redrive import Massage", {})  # noqa: S102  what a person may write


def test_importing_the_package_loads_no_library_so_that_help_stays_quick() -> None:
    code = "import sys; before = set(sys.modules); import redrive; print(*(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in ended.stdout.split()}
    assert roots - sys.stdlib_module_names == {"redrive"}
    assert "asyncio" not in roots


def test_the_version_is_that_of_the_package() -> None:
    assert redrive.__version__ == version("redrive")
