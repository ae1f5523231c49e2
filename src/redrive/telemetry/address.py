"""Where metrics are told."""

from __future__ import annotations

import re
from typing import NamedTuple

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(\d{1,5})(?:-(\d{1,5}))?")
_LAST_PORT = 65535
_MOST_PORTS = 1000


class Address(NamedTuple):
    """Where to listen: at the first port that is free."""

    host: str
    first: int
    last: int

    @classmethod
    def parse(cls, written: str) -> Address:
        """`127.0.0.1:9464`, `0.0.0.0:9464-9479`, `[::1]:9464`. ValueError with the accepted forms for all else."""
        found = _ADDRESS.fullmatch(written.strip())
        first = int(found[2]) if found else 0
        last = int(found[3] or first) if found else 0
        if (
            found is None
            or not 0 <= first <= last <= _LAST_PORT
            or last - first >= _MOST_PORTS
            or (last and not first)
        ):
            raise ValueError("should be an address and a port, or a range of them, such as '127.0.0.1:9464-9479'")
        return cls(found[1].strip("[]"), first, last)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.first}" if self.first == self.last else f"{host}:{self.first}-{self.last}"
