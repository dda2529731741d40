"""The only place that reads the wall clock. Times are UTC datetimes, stored as microseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def now_us() -> int:
    """Microseconds since 1970 UTC by the wall clock. It may step back; order never rests on it."""
    return time.time_ns() // 1000


def from_us(us: int) -> datetime:
    """An aware UTC datetime from microseconds since 1970, exact."""
    return _EPOCH + timedelta(microseconds=us)


def to_us(moment: datetime) -> int:
    """Microseconds since 1970 of an aware datetime, exact."""
    return (moment - _EPOCH) // _MICROSECOND


def rfc3339(moment: datetime) -> str:
    """The wire form: UTC, always six decimals, `Z` (RFC 3339)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rfc3339_us(us: int) -> str:
    """The wire form of microseconds since 1970."""
    seconds, rest = divmod(us, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:06d}Z"
