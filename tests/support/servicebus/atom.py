"""The XML that the administration speaks, as the SDK reads and writes it: Atom around a description."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ATOM = "{http://www.w3.org/2005/Atom}"
OURS = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
_COUNTS = "{http://schemas.microsoft.com/netservices/2011/06/servicebus}"
_MOMENT = "2030-01-02T03:04:05Z"


def described(body: bytes) -> ET.Element:
    """What somebody wants an entity to be like."""
    found = ET.fromstring(body).find(f"{ATOM}content/*")  # noqa: S314  the tests' own
    assert found is not None
    return found


def simple(description: ET.Element) -> dict[str, str]:
    """Its values that are texts, by their names."""
    return {child.tag.removeprefix(OURS): child.text or "" for child in description if not len(child)}


def description(kind: str, values: Mapping[str, str], counts: Mapping[str, int]) -> ET.Element:
    made = ET.Element(f"{OURS}{kind}Description")
    for name, value in values.items():
        ET.SubElement(made, f"{OURS}{name}").text = value
    details = ET.SubElement(made, f"{OURS}CountDetails")
    for name, count in counts.items():
        ET.SubElement(details, f"{_COUNTS}{name}").text = str(count)
    return made


def entry(title: str, content: ET.Element) -> ET.Element:
    made = ET.Element(f"{ATOM}entry")
    for name, text in (("id", f"https://emulator/{title}"), ("title", title), ("updated", _MOMENT)):
        ET.SubElement(made, f"{ATOM}{name}").text = text
    holder = ET.SubElement(made, f"{ATOM}content", {"type": "application/xml"})
    holder.append(content)
    return made


def feed(entries: Iterable[ET.Element], *, after: str = "") -> ET.Element:
    """`after`: where the next page is; Azure's links are so."""
    made = ET.Element(f"{ATOM}feed")
    ET.SubElement(made, f"{ATOM}title").text = "Publicly Listed Services"
    ET.SubElement(made, f"{ATOM}link", {"rel": "self", "href": "https://emulator/"})
    if after:
        ET.SubElement(made, f"{ATOM}link", {"rel": "next", "href": after})
    made.extend(entries)
    return made


def error(code: int, detail: str) -> ET.Element:
    made = ET.Element("Error")
    ET.SubElement(made, "Code").text = str(code)
    ET.SubElement(made, "Detail").text = detail
    return made


def encoded(element: ET.Element) -> bytes:
    written: bytes = ET.tostring(element, encoding="utf-8", xml_declaration=True)
    return written
