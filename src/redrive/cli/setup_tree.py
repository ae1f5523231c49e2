"""The exchanges, queues, bindings and topics of `redrive setup`: as a tree for people, as rows for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.cli.escaping import escape
from redrive.cli.output import Column, console

if TYPE_CHECKING:
    from rich.tree import Tree

    from redrive.broker_setup import BrokerExamined
    from redrive.transports.setup import Found

COLUMNS = (
    Column("for", "FOR"),
    Column("kind", "KIND"),
    Column("name", "NAME", shrinks=True),
    Column("role", "ROLE"),
    Column("state", "STATE"),
    Column("arguments", "ARGUMENTS", shrinks=True),
)
_STYLES = {
    "missing": "yellow",
    "deferred": "dim",
    "made": "green",
    "exists": "",
    "differs": "red",
    "refused": "red",
    "unknown": "dim",
}
_WORDS = {"unknown": "made if it is missing", "deferred": "made when first used"}
_FEW = 3


class Branch(NamedTuple):
    text: str
    style: str = ""
    below: tuple[Branch, ...] = ()


def write_tree(title: str, examined: BrokerExamined) -> None:
    """On stdout: drawn on a terminal, indented elsewhere."""
    queues = tuple(Branch(one.queue, "bold", tuple(_branches(one.things))) for one in examined.queues)
    root = Branch(title, "bold", queues)
    if sys.stdout.isatty():
        console().print(_drawn(root))
        return
    sys.stdout.writelines(f"{line}\n" for line in _indented(root))


def rows(examined: BrokerExamined) -> Iterator[Mapping[str, Any]]:
    for one in examined.queues:
        for found in one.things:
            yield {"for": one.queue, **_facts(found)}


def kind_of(found: Found) -> str:
    return type(found.step.thing).__name__.removesuffix("Spec").lower()


def name_of(found: Found) -> str:
    """A binding is named by where it leads."""
    thing: Any = found.step.thing
    return f"{thing.exchange} -> {thing.queue}" if kind_of(found) == "binding" else str(thing.name)


def _facts(found: Found) -> dict[str, Any]:
    thing: Any = found.step.thing
    details = {"exchange": "kind", "binding": "routing_key"}
    own = details.get(kind_of(found))
    return {
        "kind": kind_of(found),
        "name": name_of(found),
        "role": found.step.role,
        "state": str(found.state),
        "arguments": dict(thing.arguments) if own is None else {own: getattr(thing, own)},
        "messages": None if found.look is None else found.look.messages,
        "consumers": None if found.look is None else found.look.consumers,
        "differences": [
            {
                "argument": each.argument,
                "current": _plain(each.current),
                "wanted": each.wanted,
                "remedy": each.remedy,
            }
            for each in found.differences
        ],
        "refusal": found.refusal or None,
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _branches(things: Iterable[Found]) -> Iterator[Branch]:
    """Delay queues in one state are one branch. One that is not as wanted stands alone, as all other things do."""
    alike: dict[object, list[Found]] = {}
    for found in things:
        alone = not found.step.delays or found.differences or found.refusal
        alike.setdefault((kind_of(found), name_of(found)) if alone else found.state, []).append(found)
    for together in alike.values():
        yield _thing(together[0]) if len(together) == 1 else _delay_queues(together)


def _delay_queues(together: Sequence[Found]) -> Branch:
    facts = [_facts(found) for found in together]
    state = facts[0]["state"]
    shown = _spanned([each["name"] for each in facts])
    told = [
        Branch(f"{name} = {_spanned([each['arguments'][name] for each in facts])}", "dim")
        for name in facts[0]["arguments"]
    ]
    kinds = f"{facts[0]['kind']}s"
    text = f"{kinds} {shown} ({len(facts)} delay {kinds}): {_WORDS.get(state, state)}"
    return Branch(text, _STYLES[state], tuple(told))


def _spanned(values: Sequence[Any]) -> str:
    """What they all are, or each of a few, or the first and the last."""
    different = list(map(_value, dict.fromkeys(values)))
    return ", ".join(different) if len(different) <= _FEW else f"{different[0]} … {different[-1]}"


def _value(value: Any) -> str:
    return '""' if value == "" else str(value)


def _thing(found: Found) -> Branch:
    facts = _facts(found)
    state = _WORDS.get(facts["state"], facts["state"])
    role = "" if facts["kind"] == "binding" else f" ({facts['role']})"
    told = [Branch(f"{name} = {_value(value)}", "dim") for name, value in facts["arguments"].items()]
    told += [Branch(str(each), "red") for each in found.differences]
    told += [Branch(found.refusal, "red")] if found.refusal else []
    return Branch(f"{facts['kind']} {facts['name']}{role}: {state}", _STYLES[facts["state"]], tuple(told))


def _drawn(branch: Branch) -> Tree:
    from rich.text import Text  # noqa: PLC0415  only on a terminal
    from rich.tree import Tree  # noqa: PLC0415  as above

    tree = Tree(Text(escape(branch.text), style=branch.style))
    tree.children.extend(map(_drawn, branch.below))
    return tree


def _indented(branch: Branch, depth: int = 0) -> Iterator[str]:
    yield "  " * depth + escape(branch.text)
    for each in branch.below:
        yield from _indented(each, depth + 1)


def counted(things: Sequence[Found]) -> str:
    """2 queues, 1 exchange."""
    kinds = [kind_of(found) for found in things]
    return ", ".join(
        f"{kinds.count(kind)} {kind}{'' if kinds.count(kind) == 1 else 's'}" for kind in dict.fromkeys(kinds)
    )
