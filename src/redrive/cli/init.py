"""`redrive init`: the first files of a project, ready to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redrive.cli.changing import DryRunOption
from redrive.cli.output import note
from redrive.errors import Refused, UsageError

app = typer.Typer()

_SETTINGS = """\
# Settings of Redrive. `redrive config show` lists all of them with their values and where each comes from.
# Variables win over this file: REDRIVE_RETRY__ATTEMPTS=3.

[app]
name = "hello"

[broker]
url = "embedded:///redrive-broker.db"   # a file in the working folder; no server needed
# url = "amqp://user:password@rabbitmq/"   # RabbitMQ; then: redrive setup app:app
# url = "kafka://kafka1:9092,kafka2:9092"  # Kafka; likewise
# url = "sqs://eu-west-1"                  # Amazon SQS; likewise
# url = "servicebus://NAMESPACE"           # Azure Service Bus; likewise

[store]
url = "sqlite:///redrive.db"

[retry]
attempts = 5            # the first one included
initial_delay = "5s"    # then 10s, 20s, ... with full jitter
max_delay = "5m"

# One queue may differ:
# [queues.hello.retry]
# attempts = 3
"""

_APP = '''\
"""A first handler.

Run it:             redrive work app:app
Send it something:  redrive send hello '{"name": "world"}'
See it fail:        redrive send hello '{}'
"""

from typing import Any

from redrive import App, Permanent

app = App("hello")


@app.handler("hello")
async def greet(data: dict[str, Any]) -> None:
    if "name" not in data:
        raise Permanent("a greeting needs a name")  # retrying cannot help: a dead letter at once
    print(f"Hello, {data['name']}!", flush=True)
'''

_IGNORED = ("redrive.db*", "redrive-broker.db*", ".redrive/")

_NEXT = """\
Next, in two terminals:
  redrive work app:app
  redrive send hello '{"name": "world"}'
And then a message that fails, and what became of it:
  redrive send hello '{}'
  redrive list"""


@app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="Where.", show_default="this folder")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite redrive.toml and app.py.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Write redrive.toml and a first handler, and say what to type next. Overwrites nothing."""
    files = {folder / "redrive.toml": _SETTINGS, folder / "app.py": _APP}
    standing = [str(path) for path in files if path.exists()]
    if standing and not force:
        raise Refused(
            f"{' and '.join(standing)} would be overwritten; nothing was written",
            remedy="choose another folder, or overwrite with --force",
        )
    ignore = folder / ".gitignore"
    if not ignore.exists():
        files[ignore] = "\n".join(_IGNORED) + "\n"
    for path, text in files.items():
        if not dry_run:
            _write(path, text)
        typer.echo(str(path))
    for line in ["Nothing was written."] if dry_run else _told(ignore):
        note(line)


def _told(ignore: Path) -> list[str]:
    known = ignore.read_text("utf-8", errors="replace").split()
    missing = [line for line in _IGNORED if line not in known]
    hint = [f"Add to {ignore}: {' '.join(missing)}"] if missing else []
    return [*hint, *_NEXT.splitlines()]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", remedy="choose a folder that this user may write to"
        ) from None
