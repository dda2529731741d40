"""Times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from memstore.cli.exits import USAGE, Stop
from memstore.model import clock

_AGO = re.compile(r"(\d{1,6})(s|m|h|d|w)")
_UNIT = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

HELP = "A time (UTC unless it says otherwise), or how long ago: 90s, 15m, 2h, 3d, 1w."


def moment(text: str | None, option: str) -> datetime | None:
    """The moment of an option's text; stops, as misused, when it is none."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        past = timedelta(**{_UNIT[ago[2]]: int(ago[1])})
        try:
            return clock.from_us(clock.now_us()) - past
        except OverflowError:
            raise _misused(option) from None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _misused(option) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _misused(option: str) -> Stop:
    return Stop(USAGE, f"{option} is a time such as 2026-01-31T12:00:00Z, or 15m, 2h, 3d ago.")
