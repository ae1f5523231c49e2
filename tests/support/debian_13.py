"""Debian 13 with its RabbitMQ 4 in a folder of its own, beside whatever this machine runs.

`python -m support.debian_13` makes it once, in the user's cache, with Debian's debootstrap and from the mirror of
this machine's apt; `make chaos` does so. Where it cannot be had, one line says why and the tests are skipped.
Nothing else of the machine is changed: what is missing for it is unpacked in a temporary folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SUITE = "trixie"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NEEDED = ("apt-get", "dpkg-deb", "chroot", "wget", "gpgv")
_FOLDER = ("redrive", "debian-13")


class NotHere(Exception):
    """Why it cannot be had."""


def folder() -> Path:
    """Where the system is, or would be."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache").resolve().joinpath(*_FOLDER)


def is_made() -> bool:
    """It is given its name when it is complete."""
    return folder().is_dir()


def make() -> None:
    """Does nothing if it is there. Raises NotHere."""
    if is_made():
        return
    _require_what_it_takes()
    root = folder()
    root.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix="debian-13-half-made-", dir=root.parent))
    try:
        half.chmod(0o755)
        _bootstrap(half)
        _install(half)
        _give_paths_their_meaning(half, root)
        half.rename(root)
    finally:
        if half.exists():
            shutil.rmtree(half, ignore_errors=True)


def _require_what_it_takes() -> None:
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise NotHere("only root on Linux can make and enter it")
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing or not _KEYS.exists():
        raise NotHere(f"this machine lacks {', '.join([*missing, *([] if _KEYS.exists() else [str(_KEYS)])])}")


def _bootstrap(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="redrive-debootstrap-") as unpacked:
        program, settings = _debootstrap(Path(unpacked))
        keys, mirror = f"--keyring={_KEYS}", _mirror()
        _run(program, "--variant=minbase", keys, SUITE, str(root), mirror, environment=settings)


def _debootstrap(unpacked: Path) -> tuple[str, Mapping[str, str]]:
    """The machine's own, else Debian's package of it, unpacked there."""
    found = shutil.which("debootstrap")
    if found is not None:
        return found, {}
    _run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "debootstrap", cwd=unpacked)
    [package] = unpacked.glob("debootstrap_*.deb")
    _run("dpkg-deb", "-x", str(package), str(unpacked))
    return str(unpacked / "usr/sbin/debootstrap"), {"DEBOOTSTRAP_DIR": str(unpacked / "usr/share/debootstrap")}


def _mirror() -> str:
    wanted = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    told = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).split()
    if not told:
        raise NotHere("this machine's apt knows no mirror of Debian (apt-get update?)")
    return min(told)


def _install(root: Path) -> None:
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")  # no package starts anything in there
    policy.chmod(0o755)
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    for command in (("install", "-y", "-qq", "--no-install-recommends", "rabbitmq-server"), ("clean",)):
        _run("chroot", str(root), "apt-get", *command, environment=quiet)


def _give_paths_their_meaning(half: Path, root: Path) -> None:
    """Inside, the folder's own path leads to its root: a path of a file in it is the same inside and outside."""
    inside = half / root.relative_to("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.symlink_to("/")


def _run(*command: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotHere(f"{Path(command[0]).name} failed: {' '.join(last)}")
    return done.stdout


def main() -> None:
    try:
        make()
    except NotHere as why:
        print(f"no RabbitMQ 4 for the tests: {why}; its tests will be skipped")  # noqa: T201  this is a command


if __name__ == "__main__":
    main()
