"""Signed checkpoints of the ledger, one line each, in a file outside the database.

A checkpoint says which mac the row of that number has, and is signed (Ed25519). It names the digest of the one
before, so that no line can be taken out of the middle, and a row of the ledger names its own digest, so that none
can be taken off the end. A copy of the file that has left the machine holds down whoever has the key itself.

Before a checkpoint is signed, the rows since the last one are verified: what is not sound is never signed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from redrive.errors import CorruptFile, Unreachable
from redrive.ledger import GENESIS
from redrive.ledger_verifying import Fault, LedgerFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from redrive.ledger import LedgerKey


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seq: int
    mac: str
    at: str
    count: int
    """Rows up to that one."""
    previous: str
    """The digest of the line before."""
    signer: str
    """Which key signed it."""
    signature: str = ""

    def line(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.line()).hexdigest()

    def unsigned(self) -> bytes:
        return msgspec.structs.replace(self, signature="").line()


BEFORE_ALL = Checkpoint(seq=0, mac=GENESIS, at="", count=0, previous="", signer="")


def _signing(key: LedgerKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key.derived("checkpoints"))


def public_pem(key: LedgerKey) -> str:
    """What anybody may have, to see that checkpoints are ours."""
    return _signing(key).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def signer_of(public: Ed25519PublicKey) -> str:
    return hashlib.sha256(public.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]


class ReadCheckpoints(NamedTuple):
    """What files of checkpoints hold. Only what is signed by a known key counts."""

    anchors: dict[int, set[str]]
    digests: set[str]
    findings: list[LedgerFinding]


def read_checkpoints(paths: Iterable[Path], keys: Iterable[LedgerKey]) -> ReadCheckpoints:
    publics = [_signing(key).public_key() for key in keys]
    signers = {signer_of(each): each for each in publics}
    read = ReadCheckpoints({}, set(), [])
    for path in paths:
        _read_file(path, signers, read)
    return read


def _read_file(path: Path, signers: dict[str, Ed25519PublicKey], read: ReadCheckpoints) -> None:
    last = BEFORE_ALL
    previous = ""
    for number, line in enumerate(_lines(path), 1):
        checkpoint = _parsed(line)
        wrong = _wrong(checkpoint, previous, last, signers)
        if wrong:
            fault = Fault.CHECKPOINT_MISSING if wrong is _GONE else Fault.CHECKPOINT_EDITED
            read.findings.append(LedgerFinding(fault, last.seq, f"{path}, line {number}: {wrong}"))
        if checkpoint is not None and wrong in {"", _GONE}:
            read.anchors.setdefault(checkpoint.seq, set()).add(checkpoint.mac)
            read.digests.add(hashlib.sha256(line).hexdigest())
            last = checkpoint
        previous = hashlib.sha256(line).hexdigest()


_GONE = "the line before is not the one that was there when this was signed"


def _wrong(
    checkpoint: Checkpoint | None, previous: str, last: Checkpoint, signers: dict[str, Ed25519PublicKey]
) -> str:
    if checkpoint is None:
        return "this is no checkpoint"
    public = signers.get(checkpoint.signer)
    if public is None:
        return f"signed by the key {checkpoint.signer!r}, which was not given"
    try:
        public.verify(bytes.fromhex(checkpoint.signature), checkpoint.unsigned())
    except (InvalidSignature, ValueError):
        return "the signature is not of these words"
    if checkpoint.previous != previous:
        return _GONE
    return "" if checkpoint.seq > last.seq else "it is of an earlier row than the one before"


def _parsed(line: bytes) -> Checkpoint | None:
    """None also for the same in other words: what was signed was written in one way."""
    try:
        found = msgspec.json.decode(line, type=Checkpoint)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.line() == line else None


def _lines(path: Path) -> list[bytes]:
    """Whole lines. What has no end was being written when its process was killed, and nobody was told of it."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from None


_TAIL = 8192
"""Bytes, many times a line."""


class CheckpointFile:
    """Where this process appends. Others may do the same."""

    def __init__(self, path: Path, key: LedgerKey) -> None:
        self.path = path
        self.key = key

    @property
    def place(self) -> str:
        return f"{socket.gethostname()}:{self.path.absolute()}"

    def last(self) -> Checkpoint:
        """The newest. CorruptFile if the last line is none of ours."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return BEFORE_ALL
        except OSError as error:
            raise _unusable(self.path, error) from None
        if not lines:
            return BEFORE_ALL
        found = _parsed(lines[-1])
        if found is None:
            raise CorruptFile(
                f"the last line of {self.path} is no checkpoint", remedy="run `redrive audit verify`"
            )
        return found

    def append(self, checkpoint: Checkpoint, at: datetime, *, behind: Checkpoint) -> Checkpoint | None:
        """Signs it and writes it behind that one, durable when it returns. None if that is no longer the last one:
        somebody else was quicker.
        """
        try:
            with self._alone() as descriptor:
                if self.last() != behind:
                    return None
                signed = self._signed(checkpoint, "" if behind is BEFORE_ALL else behind.digest, at)
                _cut_torn(descriptor)
                os.write(descriptor, signed.line() + b"\n")
                os.fsync(descriptor)
        except OSError as error:
            raise _unusable(self.path, error) from None
        return signed

    def _signed(self, checkpoint: Checkpoint, previous: str, at: datetime) -> Checkpoint:
        private = _signing(self.key)
        signer = signer_of(private.public_key())
        told = {"previous": previous, "signer": signer, "at": at.isoformat()}
        unsigned = msgspec.structs.replace(checkpoint, **told)
        return msgspec.structs.replace(unsigned, signature=private.sign(unsigned.unsigned()).hex())

    @contextmanager
    def _alone(self) -> Iterator[int]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _cut_torn(descriptor: int) -> None:
    """A process was killed while it wrote: its half line goes, so that the next one begins a line."""
    begin = max(0, os.fstat(descriptor).st_size - _TAIL)
    tail = os.pread(descriptor, _TAIL, begin)
    os.ftruncate(descriptor, begin + tail.rfind(b"\n") + 1)


def _unusable(path: Path, error: OSError) -> Unreachable:
    return Unreachable(f"cannot use {path}: {error.strerror}", remedy="name another file in [audit] checkpoints")
