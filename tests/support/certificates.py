"""A certificate authority of the tests' own and a server certificate for loopback, made by the openssl program."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_RULES = """
[req]
distinguished_name = nobody
prompt = no
[nobody]
CN = redrive tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = IP:127.0.0.1, NAMES
"""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where they are: who trusts `authority` trusts the server that shows `certificate`."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path, *, names: Sequence[str] = ("localhost",)) -> Certificates:
    """New ones, which no others trust, for a server of all these names."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = folder / "openssl.cnf"
    rules.write_text(_RULES.replace("NAMES", ", ".join(f"DNS:{name}" for name in names)))
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    made = Certificates(authority, folder / "server.pem", folder / "server.key")
    _sign(rules, "authority", authority, authority_key)
    _sign(rules, "server", made.certificate, made.key, "-CA", str(authority), "-CAkey", str(authority_key))
    return made


def _sign(rules: Path, kind: str, certificate: Path, key: Path, *by: str) -> None:
    what = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
    where: list[str | Path] = ["-config", rules, "-extensions", kind, "-out", certificate, "-keyout", key]
    subject = f"/CN=redrive tests {kind}"
    subprocess.run(["openssl", "req", *what, *where, "-subj", subject, *by], check=True, capture_output=True)  # noqa: S607  found on PATH on purpose
