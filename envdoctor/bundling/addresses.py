"""IP and MAC addresses, told from the four-part versions that GPU libraries have."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator

from envdoctor.bundling.spans import Span, line_left_of

_IPV4 = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_IPV6 = re.compile(r"(?i)(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2}):(?:[0-9a-f]{0,4}:){1,7}[0-9a-f]{0,4}")
_MAC = re.compile(
    r"\b(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?:(?::[0-9A-Fa-f]{2}){14}|(?::[0-9A-Fa-f]{2}){2})?|"
    r"[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})\b"
)
_LABELLED_MAC = re.compile(
    r"(?i)\b(?:mac(?:[_ -]?addr(?:ess)?)?|hw[_ -]?addr(?:ess)?|ether|hardware address|"
    r"lladdr)[\"']?[ \t]{0,4}[:= ]"
    r"[ \t]{0,4}[\"']?(?P<v>[0-9a-f]{12})\b"
)
_IP_CONTEXT = re.compile(
    r"(?i)(?:\b(?:ip|ips|addr|address|host|hostname|server|peer|client|master|gateway|inet|ssh|ping|curl|dns|"
    r"nameserver|"
    r"bind|binding|listening|listen|connect|connecting|connected|endpoint|head|rdzv|proxy|node|worker|src|"
    r"dst|destination|"
    r"eth[0-9]{1,2}|ib[0-9]{1,2}|en[spox][a-z0-9]{1,12}|bond[0-9]{1,2})[\"']?(?:[ \t]{0,3}[:=])?[ \t]{0,3}"
    r"(?:(?:to|from|on|at|is|via)[ \t])?[\"'\[(]{0,2}|"
    r"[_-](?:addr|address|host|ip|endpoint|server)s?[\"']?[ \t]{0,3}[:= ][ \t]{0,3}[\"'\[(]{0,2}|://|@)$"
)
_VERSION_CONTEXT = re.compile(
    r"(?i)(?:[A-Z0-9_.+~^<>!-]|[=<>~!]=[ \t]?|[a-z0-9]=|(?:version|cu[a-z]{2,12}|nv[a-z]{2,12}|npp|nccl|"
    r"lib[a-z]{2,20}|driver|release|build|v)[\"']?[ \t:=(]{1,6}[\"']?"
    r"|(?:^|\n)[ \t*|+-]{0,8}[A-Z0-9][A-Z0-9_.+-]{0,80}[ \t|:]{1,80}[\"']?)$"
)
_VERSION_LINE = re.compile(r"(?i)\b(?:nvidia-|cu(?:dnn|blas|rand|fft|solver|sparse)|versions?\b)|[=<>~!]=")


def find_addresses(text: str, keep: Callable[[str], bool]) -> Iterator[Span]:
    """Find IPv4, IPv6 and MAC addresses, but loopback, and but what reads like a version or is in `keep`."""
    for match in _IPV4.finditer(text):
        if _is_ipv4(text, match) and not keep(match[0]):
            yield Span(*match.span(), "ip")
    for match in _IPV6.finditer(text):
        if _is_ipv6(text, match):
            yield Span(*match.span(), "ip")
    for match in _MAC.finditer(text):
        if set(match[0]) - set("0:-.") and text[match.end() : match.end() + 1] != "-":
            yield Span(*match.span(), "mac")
    for match in _LABELLED_MAC.finditer(text):
        yield Span(*match.span("v"), "mac")


def _is_ipv4(text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    try:
        address = ipaddress.IPv4Address(match[0])
    except ValueError:
        return False
    if (
        address.is_loopback
        or address.is_unspecified
        or int(address) == 0xFFFFFFFF
        or match[0].startswith("255.")
    ):
        return False
    left, right = line_left_of(text, start), text[end : end + 7]
    if re.match(r"[A-Za-z0-9_+-]|\.[0-9A-Za-z]", right):
        return False
    if _IP_CONTEXT.search(left) or re.match(r"<[0-9]>", right):
        return True
    if _VERSION_CONTEXT.search(left):
        return False
    if re.match(r":[0-9]{2,5}\b|/[0-9]{1,2}\b", right):
        return True
    return not _VERSION_LINE.search(left) and (address.is_private or address.packed[0] >= 33)


def _is_ipv6(text: str, match: re.Match[str]) -> bool:
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    if re.match(r"[A-Za-z0-9:.]", before) or re.match(r"[A-Za-z0-9:]", after):
        return False
    try:
        ipaddress.IPv6Address(
            match[0].rstrip(":") if match[0].endswith(":") and not match[0].endswith("::") else match[0]
        )
    except ValueError:
        return False
    return True
