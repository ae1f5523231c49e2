"""What a run changes in the messages that it sends: the edit options of `retry`, in the order of their typing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from redrive.cli.given_file import read
from redrive.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.run import RunPlan

_PANEL = "Edit"
_MAX_PATCH = 1024 * 1024


def _option(*names: str, metavar: str, help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        *names, metavar=metavar, help=help_, show_default=False, rich_help_panel=_PANEL
    )
    return option


def _flag(name: str, help_: str) -> typer.models.OptionInfo:
    flag: typer.models.OptionInfo = typer.Option(name, help=help_, rich_help_panel=_PANEL)
    return flag


SCHEMA_HELP = "A JSON Schema that payloads have to fit (- is stdin)."


@dataclass(frozen=True, kw_only=True)
class EditOptions:
    """One field for each option. Those of _OPERATIONS are applied in the order in which they are typed."""

    set_: Annotated[
        list[str] | None, _option("--set", metavar="PATH=VALUE", help_="Set a value, such as customer.id=17.")
    ] = None
    remove: Annotated[list[str] | None, _option("--remove", metavar="PATH", help_="Remove a value.")] = None
    rename: Annotated[list[str] | None, _option("--rename", metavar="PATH=NAME", help_="Rename a key.")] = None
    set_header: Annotated[
        list[str] | None, _option("--set-header", metavar="NAME=VALUE", help_="Set a header.")
    ] = None
    remove_header: Annotated[
        list[str] | None, _option("--remove-header", metavar="NAME", help_="Remove a header.")
    ] = None
    patch: Annotated[
        list[Path] | None, _option("--patch", metavar="FILE", help_="A JSON Patch document (- is stdin).")
    ] = None
    payload_file: Annotated[
        list[Path] | None,
        _option(
            "--payload-file", metavar="FILE", help_="The same new payload for each, JSON or not (- is stdin)."
        ),
    ] = None
    allow_sensitive: Annotated[
        bool, _flag("--allow-sensitive", "Let an edit change headers such as authorization.")
    ] = False
    schema: Annotated[
        Path | None,
        _option("--schema", metavar="FILE", help_=f"{SCHEMA_HELP} Others are passed over, never sent."),
    ] = None
    pass_over: Annotated[
        bool, _flag("--pass-over", "Make the run even if some of the first letters do not fit the schema.")
    ] = False

    @property
    def sources(self) -> list[Path]:
        """Files that are read."""
        schema = [] if self.schema is None else [self.schema]
        return [*(self.patch or ()), *(self.payload_file or ()), *schema]

    def onto(self, plan: RunPlan, typed: Sequence[str] = ()) -> RunPlan:
        """The plan with these edits. `typed` are names of fields in the order of their typing; what it does not
        name comes behind that. UsageError says what cannot be read, EditRefused what no message may be done to.
        """
        if self.pass_over and self.schema is None:
            raise UsageError("--pass-over is about a schema", remedy="give it with --schema FILE")
        given = list(self._given(typed))
        if not given and self.schema is None:
            return plan
        return self._edited(plan, given)

    def _edited(self, plan: RunPlan, given: list[tuple[str, str | bytes]]) -> RunPlan:
        from redrive.edit_parsing import parse_operations  # noqa: PLC0415  not needed for --help
        from redrive.editing import check_headers  # noqa: PLC0415  as above

        edit = parse_operations(given)
        check_headers(edit, allow_sensitive=self.allow_sensitive)
        schema = "" if self.schema is None else schema_of(self.schema)
        return msgspec.structs.replace(plan, edit=edit, allow_sensitive=self.allow_sensitive, schema=schema)

    def _given(self, typed: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
        values: dict[str, Iterator[str | Path]] = {name: iter(getattr(self, name) or ()) for name in _OPERATIONS}
        for name in typed:
            for value in islice(values.get(name, ()), 1):
                yield _OPERATIONS[name], _content(value)
        for name, rest in values.items():
            yield from ((_OPERATIONS[name], _content(value)) for value in rest)


_OPERATIONS = {
    "set_": "set",
    "remove": "remove",
    "rename": "rename",
    "set_header": "set-header",
    "remove_header": "remove-header",
    "patch": "patch",
    "payload_file": "payload-file",
}


def _content(value: str | Path) -> str | bytes:
    return value if isinstance(value, str) else read(value, at_most=_MAX_PATCH)


def schema_of(source: Path) -> str:
    """The text of a schema that can be used."""
    from redrive.edit_schema import MAX_SCHEMA, SchemaCheck  # noqa: PLC0415  not needed for --help

    document = read(source, at_most=MAX_SCHEMA)
    SchemaCheck(document)
    try:
        return document.decode()
    except UnicodeDecodeError:
        raise UsageError("the JSON Schema is not written in UTF-8", remedy="save it as UTF-8") from None
