"""Whether an IP address belongs to the public Internet, whatever it is wrapped in."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_NOT_PUBLIC = [
    ip_network(each)
    for each in (
        # What Python's `is_global` lets pass, in this version or another.
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
]
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
_LAST_32 = 0xFFFFFFFF


def is_public(text: str) -> bool:
    """False for what is no address at all."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    inside = _inside(address) if isinstance(address, IPv6Address) else []
    return all(_is_public(each) for each in inside or [address])


def _inside(address: IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The addresses that a translator or tunnel on the way would make of it; none: it is meant as it stands."""
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    last = IPv4Address(int(address) & _LAST_32)
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return [last]
    if (int(address) >> 32) & _LAST_32 in _ISATAP:
        return [last, address]
    return []


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    blocked = any(address in network for network in _NOT_PUBLIC if network.version == address.version)
    return address.is_global and not (blocked or address.is_multicast or address.is_reserved)
