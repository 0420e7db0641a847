"""Dates, times and durations as schemas: what Python's ``datetime`` holds, in the spelling of RFC 3339 and ISO 8601.

Limits compare texts of one shape: where there are any, points in time are written in whole seconds, in UTC or, if the
limit has no time zone, without one.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from pydantic_core import core_schema

from structgen.core.python_types.functions import NOTHING, Functions
from structgen.core.python_types.notes import checked, narrowed
from structgen.core.python_types.ranges import at_least, at_most, integers
from structgen.core.python_types.values import JsonDict
from structgen.core.regex.formats import DATE

_AD = "(?!0000)"  # Python's first year is 1
_SECONDS = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"  # no leap seconds
_CLOCK = rf"{_SECONDS}(?:\.[0-9]{{1,6}})?"
_ZONE = r"(?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

# Limits of digits with which no sum leaves Python's 999,999,999 days or pydantic's 32 bits for seconds of a day.
_DAYS = "(?:[0-9]{1,6}Y)?(?:[0-9]{1,7}M)?(?:[0-9]{1,7}W)?(?:[0-9]{1,8}D)?"
_HOURS = r"(?:[0-9]{1,6}H)?(?:[0-9]{1,7}M)?(?:[0-9]{1,7}(?:\.[0-9]{1,6})?S)?"
_DURATION = rf"^[+\-]?P(?=[0-9T]){_DAYS}(?:T(?=[0-9]){_HOURS})?$"
_MARGIN = timedelta(days=2)  # between the clocks of two time zones, and then some


class Times(Functions):
    """Schemas of points in time and durations."""

    def date_schema(self, schema: core_schema.DateSchema) -> JsonDict:
        """A date of the years 1 to 9999."""
        limits = _limits(schema, timedelta(days=1))
        if schema.get("now_op") is not None:
            limits += [_now(schema["now_op"], datetime.now(UTC).date())]
        derived: JsonDict = {"type": "string", "format": "date", "pattern": f"^{_AD}"}
        return self._moment(derived, schema, limits)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonDict:
        """A point in time, with or without a time zone as the type asks."""
        zone = schema.get("tz_constraint")
        limits = _limits(schema, timedelta(seconds=1))
        if schema.get("now_op") is not None:
            limits += [_now(schema["now_op"], datetime.now(UTC).replace(tzinfo=None if zone == "naive" else UTC))]
        if limits:
            shape = rf"{DATE}T{_SECONDS}{'Z' if _is_aware(limits) else ''}"
        else:
            shape = rf"{DATE}[Tt]{_CLOCK}" + {"aware": _ZONE, "naive": ""}.get(str(zone), f"{_ZONE}?")
        derived: JsonDict = {"type": "string", "pattern": f"^{_AD}{shape}$"}
        if isinstance(zone, int):
            derived = checked(derived, "datetime", f"that the time zone is {zone} seconds from UTC")
        return self._moment(derived, schema, limits)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonDict:
        """A time of day, perhaps with a time zone."""
        limits = _limits(schema, timedelta(0))
        shape = _SECONDS + ("Z" if _is_aware(limits) else "") if limits else f"{_CLOCK}{_ZONE}?"
        derived: JsonDict = {"type": "string", "pattern": f"^{shape}$"}
        if schema.get("tz_constraint") is not None:
            derived = checked(derived, "time", "its time zone")
        for is_strict in [True for key in ("gt", "lt") if schema.get(key) is not None]:
            derived = checked(derived, "time", "that it is not the limit itself") if is_strict else derived
        return self._moment(derived, schema, limits)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonDict:
        """An ISO 8601 duration; within limits one of whole seconds or whole days."""
        low, high = _inclusive(schema, timedelta(microseconds=1))
        derived: JsonDict = {"type": "string", "pattern": _DURATION}
        if low is not None or high is not None:
            options = [_whole(low, high, timedelta(seconds=1), "PT", "S", 10**7 - 1)]
            options += [_whole(low, high, timedelta(days=1), "P", "D", 10**8 - 1)]
            derived["pattern"] = f"^(?:{'|'.join(options)})$"
            derived = narrowed(derived, "timedelta", "written in whole seconds or whole days")
        if schema.get("multiple_of") is not None:
            return checked(derived, "timedelta", f"that it is a multiple of {schema['multiple_of']}")
        return derived

    def _moment(self, derived: JsonDict, schema: Any, limits: list[tuple[str, Any]]) -> JsonDict:
        """With limits, which are inclusive."""
        conditions = []
        for sign, limit in limits:
            if limit is None:
                return checked({**NOTHING}, schema["type"], "no value is within its limits")
            conditions.append({"pattern": f"^{(at_least if sign == '>=' else at_most)(_text(limit))}$"})
        if conditions:
            derived["allOf"] = conditions
        if conditions and schema["type"] != "date":
            derived = narrowed(derived, schema["type"], "written in whole seconds")
        if schema.get("now_op") is not None:
            reason = f"that it is in the {schema['now_op']} when the value is read"
            future = schema["now_op"] == "future"
            derived = (checked if future else narrowed)(
                derived, schema["type"], reason if future else "two days before the schema was made, or earlier"
            )
        return derived


def _limits(schema: Any, step: timedelta) -> list[tuple[str, Any]]:
    """Inclusive limits in whole steps; None: no value is left."""
    derived = []
    for key, sign in (("ge", ">="), ("gt", ">="), ("le", "<="), ("lt", "<=")):
        if (limit := schema.get(key)) is not None:
            derived.append((sign, _in_steps(limit, sign, key in ("gt", "lt"), step)))
    return derived


def _in_steps(limit: Any, sign: str, is_strict: bool, step: timedelta) -> Any:
    """The first (last) value in whole steps that the limit allows; None: there is none."""
    if isinstance(limit, time):
        whole = limit.replace(microsecond=0)
        if sign == "<=" or whole == limit:
            return whole
        later = (datetime.combine(date(2000, 1, 1), whole) + timedelta(seconds=1)).timetz()
        return None if later.hour == 0 and whole.hour else later
    if isinstance(limit, datetime):
        utc = limit if limit.tzinfo is None else limit.astimezone(UTC)
        whole_moment: Any = utc.replace(microsecond=0)
        exact = whole_moment == utc
    else:
        whole_moment, exact = limit, True
    try:
        if sign == ">=":
            return whole_moment + step if is_strict or not exact else whole_moment
        return whole_moment - step if is_strict and exact else whole_moment
    except OverflowError:
        return None


def _now(operation: str, now: Any) -> tuple[str, Any]:
    if isinstance(now, datetime):
        now = now.replace(microsecond=0)
    return ("<=", now - _MARGIN) if operation == "past" else (">=", now + _MARGIN)


def _is_aware(limits: list[tuple[str, Any]]) -> bool:
    return any(getattr(limit, "tzinfo", None) is not None for _, limit in limits)


def _text(limit: Any) -> str:
    """As the shape with limits has it."""
    text: str = limit.isoformat()
    if isinstance(limit, datetime):
        text = f"{limit.year:04}{text[text.index('-') :]}"
    return text.replace("+00:00", "Z")


def _inclusive(schema: Any, step: timedelta) -> tuple[timedelta | None, timedelta | None]:
    lows = [low for low in (schema.get("ge"), _moved(schema.get("gt"), step)) if low is not None]
    highs = [high for high in (schema.get("le"), _moved(schema.get("lt"), -step)) if high is not None]
    return max(lows, default=None), min(highs, default=None)


def _moved(limit: timedelta | None, step: timedelta) -> timedelta | None:
    return None if limit is None else limit + step


def _whole(low: timedelta | None, high: timedelta | None, unit: timedelta, before: str, after: str, most: int) -> str:
    """Durations of a whole number of units, with the sign in front."""
    least = -most if low is None else max(-most, math.ceil(low / unit))
    most = most if high is None else min(most, math.floor(high / unit))
    options = []
    if least <= most and most >= 0:
        options.append(before + integers(max(0, least), most) + after)
    if least <= most and least < 0:
        options.append("-" + before + integers(max(1, -most), -least) + after)
    return f"(?:{'|'.join(options)})" if options else "[^\\s\\S]"
