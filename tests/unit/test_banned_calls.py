"""TH3, TH4, TH12: what stands nowhere in the source, beyond what ruff refuses.

ruff's own rules refuse `eval`, `exec`, shells, `pickle.loads`, `yaml.load` and `random` for secrets; here it is
made sure that nobody silences them. The rest ruff does not know: whole modules that turn bytes into objects,
`==` on secrets, connections whose certificate nobody checks, and patterns that hostile text could slow down.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

CODE_RULES = {
    *(
        "S102",
        "S301",
        "S302",
        "S306",
        "S307",
        "S312",
        "S313",
        "S314",
        "S315",
        "S316",
        "S317",
        "S318",
        "S319",
        "S321",
    ),
    *(
        "S323",
        "S324",
        "S501",
        "S502",
        "S503",
        "S504",
        "S506",
        "S602",
        "S604",
        "S605",
        "S609",
        "S612",
        "S701",
        "S702",
    ),
}
"""Of ruff. Others of its family may be silenced, with a reason, where they stand."""

MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "jsonpickle",
    "marshal",
    "shelve",
    "yaml",
    "ruamel",
    "xml",
    "code",
}
UNSAFE_NAMES = {"eval", "exec", "compile", "__import__", "CERT_NONE", "_create_unverified_context", "popen"}
UNSAFE_KEYWORDS = {"verify", "check_hostname", "verify_ssl", "ssl_verify"}

SECRETS = re.compile(r"(?:^|_)(?:secret|digest|hexdigest|token|signature|mac|hmac|seal|password|password_hash)$")
COMPARED = {
    "stores/sql_runs.py: approval.digest != plan.digest(total)": "of a run's plan: it is no secret",
    "ledger_verifying.py: row.previous != self._mac": "both stand in the database, side by side",
    "stores/sql_users.py: there.password_hash == kept.password_hash": "of our own second try, not of a sign-in",
    "stores/sql_users.py: locked(connection, name).password_hash == password_hash": "as above",
    "stores/sql_users.py: users.c.password_hash == old": "as above, by the database",
    "stores/sql_tokens.py: found.digest == kept.digest": "as above",
    "stores/sql_sessions.py: sessions.c.digest == digest": "SHA-256 of 256 random bits, found by an index",
    "stores/sql_sessions.py: code.digest == digest": "as above",
    "json_text.py: token == _END_OF_ARRAY": "a token of JSON",
    "rules.py: last.changed_by == rule.signature": "a rule's name in the history",
    "rules.py: last.changed_by != rule.signature": "as above",
    "configuration/environment.py: secret != key": "the name of a setting",
    "upkeep/archive_file.py: hashlib.sha256(told).hexdigest().encode() != digest": "a checksum, which has no key",
    "upkeep/archive_file.py: end.sha256 != self._digest.hexdigest()": "as above",
}

NEVER_MESSAGES = {
    *("api.asking", "api.console", "api.guards", "edit_parsing", "json_path", "secret_url", "setting_values"),
    *("search_grammar", "search_writing", "stores.postgres_options", "transports.rabbitmq.mismatch"),
    *("transports.servicebus.topics", "transports.sqs.address", "transports.sqs.queues"),
    *("alert_settings", "disk", "telemetry.address", "upkeep.archive", "upkeep.spool_segment"),
}
"""Modules whose patterns see settings, paths, filters, names of files, words of a broker: nothing of a message."""
MEETS_MESSAGES = {
    *("alerts.conditions", "fingerprint", "imports.rows", "search_document", "search_terms", "stores.columns"),
    *("telemetry.sampling", "transports.sqs.attributes", "transports.sqs.body", "transports.sqs.fifo", "words"),
}
"""Python's `re` is quicker there than RE2, and its patterns are such that no text can hold them up."""


def sources() -> list[Path]:
    """The contract suites that are shipped are tests."""
    found = sorted(SOURCE.rglob("*.py"))
    return [path for path in found if "testing" not in path.parts]


def named(path: Path) -> str:
    return path.relative_to(SOURCE / "redrive").as_posix()


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute, ast.keyword, ast.Compare)
    read = ((named(path), ast.parse(path.read_text())) for path in sources())
    return [(name, node) for name, tree in read for node in ast.walk(tree) if isinstance(node, kinds)]


def test_the_source_is_looked_at() -> None:
    assert len(sources()) > 200


def silenced_by(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Z]+\d+\b", "".join(re.findall(r"# *noqa:((?:[ ,]*[A-Z]+\d+)+)", text))))


def test_nobody_silences_the_rules_about_code_and_certificates() -> None:
    silent = {named(path): silenced_by(path.read_text()) & CODE_RULES for path in sources()}
    assert {name: rules for name, rules in silent.items() if rules} == {}

    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    assert not CODE_RULES & set(lint["ignore"])
    of_source = [rules for where, rules in lint["per-file-ignores"].items() if where.startswith("src")]
    assert not CODE_RULES & {rule for rules in of_source for rule in rules}


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_nothing_that_turns_bytes_into_objects_is_imported() -> None:
    found = {
        (name, module) for name, node in nodes() for module in imported(node) if module.split(".")[0] in MODULES
    }
    assert found == set()


def unsafe(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNSAFE_NAMES:
        return node.func.id
    if (
        isinstance(node, ast.Attribute)
        and node.attr in UNSAFE_NAMES
        and ast.unparse(node.value) not in ("re", "re2")
    ):
        return node.attr
    if isinstance(node, ast.keyword) and node.arg in UNSAFE_KEYWORDS and ast.unparse(node.value) in {"False", "0"}:
        return node.arg
    return None


def test_no_code_is_made_of_text_and_no_certificate_goes_unchecked() -> None:
    assert {(name, found) for name, node in nodes() if (found := unsafe(node))} == set()


def last_name(node: ast.AST) -> str:
    """Of `self._token.digest` and of `plan.digest(3)`: digest."""
    if isinstance(node, ast.Call):
        inner = (
            node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "encode" else node.func
        )
        return last_name(inner)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def compared(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Compare) or not any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
        return None
    sides = (node.left, *node.comparators)
    return ast.unparse(node) if any(SECRETS.search(last_name(each)) for each in sides) else None


def test_secrets_are_compared_in_constant_time() -> None:
    found = {f"{name}: {text}" for name, node in nodes() if (text := compared(node))}

    assert found - set(COMPARED) == set(), "use hmac.compare_digest, or say in COMPARED why not"
    assert set(COMPARED) - found == set(), "no longer there"


@pytest.mark.parametrize(
    "code", ["given == self._mac", "row.token != kept", "a.hexdigest() == b", "x == digest(y)", "sent == password"]
)
def test_a_comparison_of_secrets_is_seen(code: str) -> None:
    assert compared(ast.parse(code, mode="eval").body)


def modules_with_re() -> set[str]:
    found = {name for name, node in nodes() if "re" in imported(node)}
    return {name.removesuffix(".py").replace("/", ".") for name in found}


def test_every_module_with_a_pattern_of_pythons_is_known() -> None:
    """`re2` is for all others: there hostile text costs as little as any."""
    assert modules_with_re() - NEVER_MESSAGES - MEETS_MESSAGES == set()


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from patterns_in(each)
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__


def cannot_stall(pattern: re.Pattern[Any]) -> bool:
    """A repetition without a bound is all there is of it, and of something that repeats nothing itself: nothing
    behind it can fail, so that no character is looked at more often than a few times.
    """
    parsed = importlib.import_module("re._parser").parse(pattern.pattern, pattern.flags)
    return not _endless(parsed) or (len(parsed) == 1 and not _nested(parsed))


def _repeats(items: Any) -> Iterator[tuple[int, Any]]:
    """How often at most, and what."""
    for operation, argument in items:
        if str(operation) in {"MAX_REPEAT", "MIN_REPEAT"}:
            yield int(argument[1]), argument[2]
            yield from _repeats(argument[2])
        elif str(operation) == "SUBPATTERN":
            yield from _repeats(argument[3])
        elif str(operation) == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch)


def _endless(items: Any) -> int:
    return sum(most > 64 for most, _ in _repeats(items))


def _nested(items: Any) -> bool:
    return any(most > 64 and any(True for _ in _repeats(inner)) for most, inner in _repeats(items))


DIGITS = {"search_terms"}
"""Its numbers have two endless runs of digits, of which a point tells where each ends."""


@pytest.mark.parametrize("module", sorted(MEETS_MESSAGES - DIGITS))
def test_no_text_can_stall_the_patterns_that_see_messages(module: str) -> None:
    values = vars(importlib.import_module(f"redrive.{module}")).values()
    found = [pattern for value in values for pattern in patterns_in(value)]

    assert found
    assert [each.pattern for each in found if not cannot_stall(each)] == []


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:\w+\s*)*", r".*.*=", r"(a|aa)*(b*)*", r"\w+x"])
def test_a_pattern_that_stalls_is_seen(pattern: str) -> None:
    assert not cannot_stall(re.compile(pattern))
