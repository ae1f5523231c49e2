"""Values that have to be masked and values that should not be, many of each kind, the same in every run."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

PER_KIND = 400
_ALPHABET = string.ascii_letters + string.digits


class Planted(NamedTuple):
    kind: str
    value: str
    text: str
    """Where the value stands in; written in JSON, it is between its quotes already."""


def seeded(seed: str | int) -> random.Random:
    return random.Random(seed)  # noqa: S311  the same each time, no secret


def _cpf(dice: random.Random) -> str:
    digits = [dice.randrange(10) for _ in range(9)]
    for weights in (range(10, 1, -1), range(11, 1, -1)):
        left = sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) * 10 % 11
        digits.append(left % 10)
    return "".join(map(str, digits))


def _cnpj(dice: random.Random, signs: str = string.digits) -> str:
    values = [ord(dice.choice(signs)) - 48 for _ in range(8)] + [0, 0, 0, 1]
    for weights in ((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)):
        left = sum(value * weight for value, weight in zip(values, weights, strict=True)) % 11
        values.append(0 if left < 2 else 11 - left)
    return "".join(chr(48 + value) for value in values)


def luhn(digits: str) -> str:
    """The digits, and the one that makes them a card's."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        worth = int(digit) * (2 if place % 2 == 0 else 1)
        total += worth - 9 if worth > 9 else worth
    return digits + str(-total % 10)


def _card(dice: random.Random) -> str:
    beginning, length = dice.choice(
        [("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("36", 14), ("6", 16), ("4", 19)]
    )
    return luhn(beginning + _digits(dice, length - 1 - len(beginning)))


def _digits(dice: random.Random, count: int) -> str:
    return "".join(dice.choices(string.digits, k=count))


def _signs(dice: random.Random, count: int, signs: str = _ALPHABET) -> str:
    return "".join(dice.choices(signs, k=count))


def _cut(digits: str, *sizes: int) -> list[str]:
    parts, at = [], 0
    for size in sizes:
        parts.append(digits[at : at + size])
        at += size
    return parts


def cpfs(dice: random.Random) -> str:
    digits = _cpf(dice)
    a, b, c, d = _cut(digits, 3, 3, 3, 2)
    return dice.choice([digits, f"{a}.{b}.{c}-{d}", f"{a}.{b}.{c}/{d}", f"{a} {b} {c} {d}", f"{a}{b}{c}-{d}"])


def cnpjs(dice: random.Random) -> str:
    signs = _cnpj(dice, dice.choice([string.digits, string.digits + string.ascii_uppercase]))
    a, b, c, d, e = _cut(signs, 2, 3, 3, 4, 2)
    return dice.choice([signs, f"{a}.{b}.{c}/{d}-{e}", f"{a}.{b}.{c}/{d}-{e}"])


def cards(dice: random.Random) -> str:
    digits = _card(dice)
    if len(digits) == 15:
        return dice.choice([digits, " ".join(_cut(digits, 4, 6, 5))])
    if len(digits) != 16:
        return digits
    return dice.choice(["", " ", "-"]).join(_cut(digits, 4, 4, 4, 4))


def e_mails(dice: random.Random) -> str:
    name = dice.choice(["joao.silva", "maria+spam", "o'neil", "a_b-c", "x", "José"]) + _digits(dice, 3)
    host = dice.choice(["example.com", "mail.example.com.br", "empresa.net", "exämple.de", "a-b.io"])
    address = f"{name}@{host}"
    return dice.choice([address.lower(), address.upper(), address])


def phones(dice: random.Random) -> str:
    area, mobile = dice.choice(["11", "21", "31", "47", "85"]), "9" + _digits(dice, 8)
    fixed = dice.choice("2345") + _digits(dice, 7)
    return dice.choice(
        [
            f"+55{area}{mobile}",
            f"+55 {area} {mobile[:5]}-{mobile[5:]}",
            f"+55 ({area}) {mobile[:5]}-{mobile[5:]}",
            f"({area}) {mobile[:5]}-{mobile[5:]}",
            f"({area}){mobile}",
            f"{area} {mobile[:5]}-{mobile[5:]}",
            f"0{area} {mobile[:5]}-{mobile[5:]}",
            f"({area}) {fixed[:4]}-{fixed[4:]}",
            f"{area} {fixed[:4]}-{fixed[4:]}",
            f"55{area}{mobile}",
            f"+1 {dice.randrange(200, 999)} 555 {_digits(dice, 4)}",
            f"+49 {dice.randrange(100, 200)} {_digits(dice, 8)}",
            f"+44{dice.randrange(10, 99)}{_digits(dice, 8)}",
        ]
    )


def jwts(dice: random.Random) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": _digits(dice, 6), "name": "x"})
    head, body = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)
    return f"{head}.{body}.{_signs(dice, 43, _ALPHABET + '-_')}"


def private_keys(dice: random.Random) -> str:
    kind = dice.choice(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
    lines = "\n".join(_signs(dice, 64, _ALPHABET + "+/") for _ in range(3))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def keys(dice: random.Random) -> str:
    upper = string.ascii_uppercase + string.digits
    return dice.choice(
        [
            "AKIA" + _signs(dice, 16, upper),
            "ASIA" + _signs(dice, 16, upper),
            "AIza" + _signs(dice, 35),
            f"gh{dice.choice('pousr')}_" + _signs(dice, 36),
            "github_pat_" + _signs(dice, 60),
            f"xox{dice.choice('bpas')}-{_digits(dice, 11)}-{_signs(dice, 24)}",
            f"{dice.choice('sr')}k_{dice.choice(['live', 'test'])}_" + _signs(dice, 24),
            f"rdv_{_signs(dice, 12)}_{_signs(dice, 40)}",
            "glpat-" + _signs(dice, 20),
            f"SG.{_signs(dice, 22)}.{_signs(dice, 43)}",
            "npm_" + _signs(dice, 36),
        ]
    )


def tokens(dice: random.Random) -> str:
    if dice.random() < 0.5:
        return f"{dice.choice(['Bearer', 'bearer', 'BEARER'])} {_signs(dice, dice.randrange(20, 60))}"
    pair = f"{_signs(dice, 6)}:{_signs(dice, 9)}".encode()
    return f"{dice.choice(['Basic', 'basic'])} {base64.b64encode(pair).decode()}"


def passwords(dice: random.Random) -> str:
    """Between `://` and `@`."""
    return f"{_signs(dice, 5)}:{_signs(dice, 10, _ALPHABET + '!$:')}"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "cpf": cpfs,
    "cnpj": cnpjs,
    "card": cards,
    "e-mail": e_mails,
    "phone": phones,
    "jwt": jwts,
    "private key": private_keys,
    "key": keys,
    "token": tokens,
    "password": passwords,
}

_AROUND = (
    "{}",
    "value {} was refused",
    "[{}]",
    "({})",
    "first={};second=2",
    "<x>{}</x>",
    "id 4711, {}, 2026-03-01T12:00:00Z",
    "Duplicate entry '{}' for key 'PRIMARY'",
    "line one\nline {}\nline three",
    "não foi possível: {}.",
    "\t{}\t",
)


def planted(kind: str) -> Iterator[Planted]:
    dice = seeded(kind)
    for number in range(PER_KIND):
        value = KINDS[kind](dice)
        around = _AROUND[number % len(_AROUND)]
        if kind == "password":
            around = around.replace("{}", "postgres://{}@db.internal/shop")
        yield Planted(kind, value, around.replace("{}", value))


def as_json_string(text: str, dice: random.Random) -> str:
    """Written in one of the ways in which libraries write it."""
    plain, ascii_only = json.dumps(text, ensure_ascii=False), json.dumps(text)
    return dice.choice([plain, ascii_only, ascii_only.replace("/", "\\/"), escaped_at_random(text, dice)])


def escaped_at_random(text: str, dice: random.Random) -> str:
    return '"' + "".join(_escaped(each) if dice.random() < 0.3 else json.dumps(each)[1:-1] for each in text) + '"'


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def percent_encoded(value: str) -> str:
    return quote(value, safe="")


def harmless(count: int) -> Iterator[str]:
    """Ids, times, amounts and words as messages are full of."""
    dice = seeded("harmless")
    for number in range(count):
        yield _HARMLESS[number % len(_HARMLESS)](dice)


def _moment(dice: random.Random) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(200_000_000))


_HARMLESS: tuple[Callable[[random.Random], str], ...] = (
    lambda dice: _moment(dice).isoformat(),
    lambda dice: _moment(dice).strftime("%Y-%m-%d %H:%M:%S"),
    lambda dice: _moment(dice).strftime("%Y%m%d%H%M%S"),
    lambda dice: _moment(dice).strftime("%d/%m/%Y"),
    lambda dice: str(int(_moment(dice).timestamp())),
    lambda dice: str(int(_moment(dice).timestamp() * 1000)),
    lambda dice: str(int(_moment(dice).timestamp() * 1_000_000)),
    lambda dice: str(uuid.UUID(int=dice.getrandbits(128), version=4)),
    lambda dice: f"{dice.getrandbits(128):032x}",
    lambda dice: f"ORD-{_moment(dice).year}-{_digits(dice, 8)}",
    lambda dice: _digits(dice, 8),
    lambda dice: _digits(dice, 9),
    lambda dice: _digits(dice, 10),
    lambda dice: "1" + _digits(dice, 17),
    lambda dice: f"{dice.randrange(1, 10**6)}.{_digits(dice, 2)}",
    lambda dice: f"0.{_digits(dice, 11)}",
    lambda dice: f"{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(256)}",
    lambda dice: (
        f"v{dice.randrange(20)}.{dice.randrange(20)}.{dice.randrange(20)} of package@{dice.randrange(9)}.1.2"
    ),
    lambda dice: f"{_digits(dice, 5)}-{_digits(dice, 3)}",
    lambda dice: f"https://example.com/orders/{_digits(dice, 9)}?page={dice.randrange(99)}",
    lambda dice: f"the basic subscription {_signs(dice, 8, string.ascii_lowercase)} has expired",
    lambda dice: f"unexpected token: {_signs(dice, 6, string.ascii_lowercase)}",
    lambda dice: f"SKU-{_signs(dice, 8, string.ascii_uppercase + string.digits)}",
    lambda dice: f"{dice.randrange(10**6)} of {dice.randrange(10**6)} rows, {dice.randrange(10**9)} bytes",
)
