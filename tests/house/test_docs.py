"""The documentation keeps up with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memstore.settings import SETTINGS, Setting

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_every_setting_is_documented(setting: Setting) -> None:
    """Each setting has a row with its key, variable, default and meaning."""
    rows = [line for line in CONFIGURATION.splitlines() if line.startswith(f"| `{setting.key}` |")]
    assert len(rows) == 1
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[1] == f"`{setting.variable}`"
    assert cells[3] == setting.meaning
    if setting.default:
        assert cells[2] == f"`{setting.default}`"


def test_no_unknown_setting_is_documented() -> None:
    """The page names no setting that does not exist."""
    documented = set(re.findall(r"`(MEMSTORE_[A-Z_]+)`", CONFIGURATION))
    assert documented == {setting.variable for setting in SETTINGS}


def test_links_lead_somewhere() -> None:
    """Every relative link of the pages leads to a file."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken
