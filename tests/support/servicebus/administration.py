"""The administration of the emulator: HTTPS and Atom, for the SDK's own client, unchanged.

It makes, tells and lists queues, topics, subscriptions and rules. Rules are kept and told, and not evaluated: what
a subscription of the emulator wants is a function of the test's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode
from xml.etree import ElementTree as ET

from aiohttp import web

from support.servicebus import atom
from support.servicebus.descriptions import counts_of, rules_of, values_of
from support.servicebus.namespace import SUBSCRIPTIONS
from support.servicebus.requests import TOKEN

if TYPE_CHECKING:
    from support.certificates import Certificates
    from support.servicebus.emulator import ServiceBusEmulator

_DEEPEST = 5
"""topic/subscriptions/NAME/rules/NAME"""
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}type"


class EmulatedAdministration:
    """`given`: what entities were made with, by their paths in lower case. A test may change it."""

    def __init__(self, emulator: ServiceBusEmulator, certificates: Certificates, *, key: str) -> None:
        self._namespace = emulator.namespace
        self._key = key
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates.certificate, certificates.key)
        self._runner: web.AppRunner | None = None
        self.given: dict[str, dict[str, str]] = {}
        self.rules: dict[str, dict[str, ET.Element]] = {}
        self.asked: list[str] = []
        """Methods and paths of all requests."""
        self.refuses = ""
        """Why whatever is to be made is refused."""
        self.port = 0

    async def start(self) -> None:
        served = web.Application()
        served.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(served, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.match_info["path"].strip("/")
        self.asked.append(f"{request.method} {path}")
        if not self._is_allowed(request.headers.get("Authorization", "")):
            return _said(401, atom.error(401, "InvalidSignature: The token has an invalid signature."))
        if request.method == "PUT" and self.refuses:
            return _said(400, atom.error(400, f"SubCode=40000. {self.refuses}"))
        if request.method == "PUT":
            return self._put(path.split("/"), await request.read(), again=request.headers.get("If-Match") == "*")
        return self._get(path, request.query)

    def _is_allowed(self, authorization: str) -> bool:
        kind, _, rest = authorization.partition(" ")
        if kind == "Bearer":
            return rest == TOKEN
        told = dict(pair.split("=", 1) for pair in rest.split("&") if "=" in pair)
        signed = f"{told.get('sr', '')}\n{told.get('se', '')}".encode()
        right = base64.b64encode(hmac.new(self._key.encode(), signed, hashlib.sha256).digest()).decode()
        return unquote(told.get("sig", "")) == right

    # Looking.

    def _get(self, path: str, query: Any) -> web.Response:
        match path.split("/"):
            case ["$Resources", kind]:
                return _page(path, query, self._queues() if kind.lower() == "queues" else self._topics())
            case [topic, _, name, _]:
                rules = self.rules.get(_path(topic, name), {})
                return _page(path, query, [atom.entry(each, rule) for each, rule in rules.items()])
            case [topic, _, name]:
                if self._namespace.receivable(_path(topic, name)) is None:
                    return _said(404, atom.error(404, "no such subscription"))
                return _said(200, self._subscription(topic, name))
            case [topic, _]:
                names = self._namespace.subscriptions(topic)
                return _page(path, query, [self._subscription(topic, each) for each in names])
            case [name]:
                return _said(200, self._entity(name))
        return _said(404, atom.error(404, f"the emulator has no {path}"))

    def _entity(self, name: str) -> ET.Element:
        """Azure gives an empty feed for what is not there."""
        if name.lower() in self._namespace.topics():
            return self._topic(name)
        return atom.feed([]) if self._namespace.receivable(name) is None else self._queue(name)

    def _queue(self, name: str) -> ET.Element:
        entity = self._namespace.receivable(name)
        assert entity is not None
        values = values_of(entity, self.given.get(name.lower(), {}), subscription=False)
        return atom.entry(name, atom.description("Queue", values, counts_of(entity)))

    def _topic(self, name: str) -> ET.Element:
        return atom.entry(name, atom.description("Topic", self.given.get(name.lower(), {}), {}))

    def _subscription(self, topic: str, name: str) -> ET.Element:
        entity = self._namespace.receivable(_path(topic, name))
        assert entity is not None
        values = values_of(entity, self.given.get(_path(topic, name), {}), subscription=True)
        return atom.entry(name, atom.description("Subscription", values, counts_of(entity)))

    def _queues(self) -> list[ET.Element]:
        return [self._queue(name) for name in self._namespace.queues()]

    def _topics(self) -> list[ET.Element]:
        return [self._topic(name) for name in self._namespace.topics()]

    # Making.

    def _put(self, parts: list[str], body: bytes, *, again: bool) -> web.Response:
        wanted = atom.described(body)
        if len(parts) == _DEEPEST:
            self.rules.setdefault(_path(parts[0], parts[2]), {})[parts[4]] = wanted
            return _said(201, atom.entry(parts[4], wanted))
        if self._has(parts) != again:
            return _said(404 if again else 409, atom.error(409, "SubCode=40900. Conflict."))
        values = atom.simple(wanted)
        if not again:
            self._make(parts, wanted.tag, values)
        self.given["/".join(parts).lower()] = values
        told = self._entity(parts[0]) if len(parts) == 1 else self._subscription(parts[0], parts[2])
        return _said(200 if again else 201, told)

    def _has(self, parts: list[str]) -> bool:
        if len(parts) > 1:
            return self._namespace.receivable(_path(parts[0], parts[2])) is not None
        return self._namespace.receivable(parts[0]) is not None or parts[0].lower() in self._namespace.topics()

    def _make(self, parts: list[str], tag: str, values: dict[str, str]) -> None:
        if tag.endswith("QueueDescription"):
            self._namespace.queue(parts[0], rules_of(values))
        elif tag.endswith("TopicDescription"):
            self._namespace.topic(parts[0])
        else:
            self._namespace.subscription(parts[0], parts[2], rules=rules_of(values))
            self.rules[_path(parts[0], parts[2])] = {"$Default": _everything()}


def _path(topic: str, subscription: str) -> str:
    return f"{topic}/{SUBSCRIPTIONS}/{subscription}".lower()


def _everything() -> ET.Element:
    """The rule that a new subscription has."""
    rule = ET.Element(f"{atom.OURS}RuleDescription")
    ET.SubElement(rule, f"{atom.OURS}Filter", {_XSI: "TrueFilter"})
    ET.SubElement(rule, f"{atom.OURS}Action", {_XSI: "EmptyRuleAction"})
    ET.SubElement(rule, f"{atom.OURS}Name").text = "$Default"
    return rule


def _page(path: str, query: Any, entries: list[ET.Element]) -> web.Response:
    skip, top = int(query.get("$skip", 0)), int(query.get("$top", 100))
    rest = len(entries) > skip + top
    after = f"https://emulator/{path}?{urlencode({'$skip': skip + top, '$top': top})}" if rest else ""
    return _said(200, atom.feed(entries[skip : skip + top], after=after))


def _said(status: int, element: ET.Element) -> web.Response:
    return web.Response(status=status, body=atom.encoded(element), content_type="application/atom+xml")
