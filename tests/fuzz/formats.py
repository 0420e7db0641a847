"""The formats that are easily judged: each by a few lines over Python's standard library."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable


def _date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        year = int(text[:4])
        # RFC 3339 knows a year 0, Python does not: it is a leap year, as 2000 is.
        datetime.date(year or 2000, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


def _ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(re.fullmatch(r"0|[1-9][0-9]{0,2}", p) and int(p) < 256 for p in parts)


def _ipv6(text: str) -> bool:
    if not text.isascii() or "%" in text or "/" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _expression(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "uuid": _expression("[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    "json-pointer": _expression(r"(?:/(?:[^~/]|~[01])*)*"),
}


IN_DRAFT_3 = {"date": _date, "ip-address": _ipv4, "ipv6": _ipv6}
"""Draft 3 has fewer, and another name for one."""
