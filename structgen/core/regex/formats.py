"""The standard formats of JSON Schema as automata, from the grammars of their RFCs.

Each format is a regular expression over named pieces that follow the ABNF of its RFC. Where a format is not regular,
or its automaton would be out of proportion, the language here is a subset, so that what is generated is always valid,
and `excluded_dfa` is a subset of its complement:

- ``hostname``, ``idn-hostname``: no ``xn--`` labels. What a character of Punycode spells depends on all before it: the
  smallest automaton of the labels with at most three characters behind ``xn--`` has 274 states, with at most four
  2,364, and there may be 59. The limit of 253 characters in all is in :data:`MAX_LENGTH`, not in the automaton; for
  ``idn-hostname`` see ``idn``.
- ``time``, ``date-time``: a leap second only with offsets of whole quarters of an hour.
- ``regex``: see ``regex_format``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from structgen.core.regex.dfa import Dfa, complement, difference
from structgen.core.regex.idn import idn_hostname
from structgen.core.regex.pattern import full_match_dfa, pattern_dfa
from structgen.core.regex.regex_format import NO_REGEX, REGEX, REGEX_DRAFT3

MAX_LENGTH: dict[str, int] = {"hostname": 253, "idn-hostname": 253}
"""Formats with a length limit (code points) besides the automaton: RFC 1035 section 2.3.4, less the final dot."""

_DRAFT3_NAMES = {"ip-address": "ipv4", "host-name": "hostname", "time": "time-draft3", "regex": "regex-draft3"}


def format_dfa(name: str, dialect: str = "draft2020-12") -> Dfa | None:
    """The automaton of a standard format, None for a name that is not standard.

    A name that is standard in any draft from 4 on means the same in every such ``dialect``; ``draft3`` has names of
    its own. Built when first asked for, then kept: most take some milliseconds, ``idn-email``, ``idn-hostname`` and
    ``regex`` up to a second.
    """
    spec = _known(name, dialect)
    return None if spec is None else _build(spec)


def excluded_dfa(name: str, dialect: str = "draft2020-12") -> Dfa | None:
    """Texts that are not of a standard format: all but those of `format_dfa`, less what may be of it and is left out
    there. None for a name that is not standard.
    """
    spec = _known(name, dialect)
    return None if spec is None else _build_excluded(spec)


def _known(name: str, dialect: str) -> str | None:
    """The name of the automaton."""
    if dialect == "draft3":
        name = _DRAFT3_NAMES.get(name, name)
    elif name.endswith("-draft3"):
        return None
    return name if name in _BUILDERS else None


def max_length(name: str, dialect: str = "draft2020-12") -> int | None:
    """The limit of a format in code points that its automaton does not contain (`MAX_LENGTH`), if any."""
    return MAX_LENGTH.get(_DRAFT3_NAMES.get(name, name) if dialect == "draft3" else name)


@lru_cache(maxsize=64)
def _build(name: str) -> Dfa:
    builder = _BUILDERS[name]
    return builder() if callable(builder) else full_match_dfa(builder)


@lru_cache(maxsize=64)
def _build_excluded(name: str) -> Dfa:
    return pattern_dfa(_EXCLUDED[name]) if name in _EXCLUDED else complement(_build(name))


# RFC 3339 section 5.6 and appendix A

DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_HOUR, _MINUTE, _FRACTION = r"(?:[01][0-9]|2[0-3])", r"[0-5][0-9]", r"(?:\.[0-9]+)?"


def _leap_seconds() -> str:
    """Second 60 is the end of a UTC day: the local time less the offset is 23:59."""
    cases = [rf"23:59:60{_FRACTION}[Zz]"]
    for minutes in range(0, 24 * 60, 15):
        offset = f"{minutes // 60:02}:{minutes % 60:02}"
        for sign in (1, -1):
            hour, minute = divmod((23 * 60 + 59 + sign * minutes) % (24 * 60), 60)
            cases.append(rf"{hour:02}:{minute:02}:60{_FRACTION}{'[+]' if sign > 0 else '-'}{offset}")
    return "|".join(cases)


_TIME = rf"(?:{_HOUR}:{_MINUTE}:{_MINUTE}{_FRACTION}(?:[Zz]|[+\-]{_HOUR}:{_MINUTE})|{_leap_seconds()})"  # seconds 00–59
_DUR_TIME = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DUR_DATE = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = rf"P(?:{_DUR_DATE}(?:{_DUR_TIME})?|{_DUR_TIME}|[0-9]+W)"

# RFC 2673 section 3.2, RFC 4291 section 2.2 with the ABNF of RFC 3986

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = (
    "(?:"
    + "|".join(
        [f"(?:{_H16}:){{6}}{_LS32}", f"::(?:{_H16}:){{5}}{_LS32}"]
        + [f"(?:(?:{_H16}:){{0,{5 - n}}}{_H16})?::(?:{_H16}:){{{n - 1}}}{_LS32}" for n in (5, 4, 3, 2, 1)]
        + [f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}", f"(?:(?:{_H16}:){{0,6}}{_H16})?::"]
    )
    + ")"
)

# RFC 1123 section 2.1, RFC 5321 section 4.1.2, RFC 6531 section 3.3

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?"


def _hostname() -> Dfa:
    ascii_names = full_match_dfa(rf"{_LABEL}(?:\.{_LABEL})*")
    return difference(ascii_names, pattern_dfa(r"(?:^|\.)[Xx][Nn]--"))


def _mailbox(extra: str, label: str) -> str:
    """RFC 5321 ``Mailbox``; ``extra`` are the characters that RFC 6531 adds to its text."""
    atom = rf"[A-Za-z0-9!#$%&'*+\-/=?\^_`{{|}}~{extra}]+"
    quoted = rf'"(?:[ !#-\[\]-~{extra}]|\\[ -~])*"'
    domain = rf"{label}(?:\.{label})*"
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{domain}|\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_IPV6})\])"


_EMAIL = _mailbox("", "[A-Za-z0-9](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?")
_U_LABEL = r"[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}\-]*[\p{L}\p{M}\p{N}])?"
_IDN_EMAIL = _mailbox(r"\u0080-\u{10FFFF}", _U_LABEL)

# RFC 3986 appendix A, RFC 3987 section 2.2

_UCSCHAR = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}" + "".join(
    rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14)
).replace(r"\u{E0000}", r"\u{E1000}")
_IPRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"


def _uri(extra: str, private: str, *, reference: bool) -> str:
    """``URI`` (or ``URI-reference``); ``extra`` is ``ucschar`` for IRIs, ``private`` ``iprivate``."""
    unreserved, sub_delims, pct = rf"A-Za-z0-9\-._~{extra}", "!$&'()*+,;=", "%[0-9A-Fa-f]{2}"
    pchar = f"(?:[{unreserved}{sub_delims}:@]|{pct})"
    segment_nc = f"(?:[{unreserved}{sub_delims}@]|{pct})+"
    name = f"(?:[{unreserved}{sub_delims}]|{pct})*"
    future = rf"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~{sub_delims}:]+"
    host = rf"(?:\[(?:{_IPV6}|{future})\]|{name})"
    authority = f"(?:(?:[{unreserved}{sub_delims}:]|{pct})*@)?{host}(?::[0-9]*)?"
    abempty = f"(?:/{pchar}*)*"
    absolute = f"/(?:{pchar}+{abempty})?"
    query = f"(?:[{unreserved}{sub_delims}:@/?{private}]|{pct})*"
    fragment = f"(?:[{unreserved}{sub_delims}:@/?]|{pct})*"
    tail = rf"(?:\?{query})?(?:#{fragment})?"
    full = rf"[A-Za-z][A-Za-z0-9+\-.]*:(?://{authority}{abempty}|{absolute}|{pchar}+{abempty}|){tail}"
    relative = rf"(?://{authority}{abempty}|{absolute}|{segment_nc}{abempty}|){tail}"
    return f"(?:{full}|{relative})" if reference else full


# RFC 6570 section 2 (with erratum 6937: the apostrophe is a literal), RFC 6901 section 3

_VARCHAR = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_VARSPEC = rf"{_VARCHAR}(?:\.?{_VARCHAR})*(?::[1-9][0-9]{{0,3}}|\*)?"
_URI_TEMPLATE = (
    rf"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|%[0-9A-Fa-f]{{2}}"
    rf"|\{{[+#./;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\}})*"
)
_JSON_POINTER = "(?:/(?:[^~/]|~[01])*)*"

_BUILDERS: dict[str, str | Callable[[], Dfa]] = {
    "date": DATE,
    "time": _TIME,
    "date-time": f"{DATE}[Tt]{_TIME}",
    "time-draft3": rf"{_HOUR}:{_MINUTE}:{_MINUTE}",
    "duration": _DURATION,
    "email": _EMAIL,
    "idn-email": _IDN_EMAIL,
    "hostname": _hostname,
    "idn-hostname": idn_hostname,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _uri("", "", reference=False),
    "uri-reference": _uri("", "", reference=True),
    "iri": _uri(_UCSCHAR, _IPRIVATE, reference=False),
    "iri-reference": _uri(_UCSCHAR, _IPRIVATE, reference=True),
    "uri-template": _URI_TEMPLATE,
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "regex": REGEX,
    "regex-draft3": REGEX_DRAFT3,
    "json-pointer": _JSON_POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_JSON_POINTER})",
}

_MAYBE_LEAP = rf"{_HOUR}:{_MINUTE}:(?:{_MINUTE}|60){_FRACTION}(?:[Zz]|[+\-]{_HOUR}:{_MINUTE})"
_MAYBE_IDN = r"[A-Za-z0-9\-\u{80}-\u{10FFFF}]"
_EXCLUDED = {
    "time": f"^(?!{_MAYBE_LEAP}$)",
    "date-time": f"^(?!{DATE}[Tt]{_MAYBE_LEAP}$)",
    "hostname": rf"^(?!{_LABEL}(?:\.{_LABEL})*$)",
    "idn-hostname": rf"^(?!{_MAYBE_IDN}+(?:\.{_MAYBE_IDN}+)*\.?$)",
    "idn-email": "^[^@]*$",
    "regex": NO_REGEX,
    "regex-draft3": NO_REGEX,
}
"""Expressions found in texts that are surely not of a format, where its automaton is narrower than the format."""
