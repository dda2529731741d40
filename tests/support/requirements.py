"""A test that cannot run here says so, and fails where everything must run."""

from __future__ import annotations

import os

import pytest


def need(condition: object, what: str) -> None:
    """Skip unless the condition holds; under CI a missing condition is a failure."""
    if condition:
        return
    if os.environ.get("CI"):
        pytest.fail(f"this machine lacks {what}")
    pytest.skip(f"needs {what}")
