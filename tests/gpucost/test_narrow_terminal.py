"""Tables on a terminal that has no room for all of their columns."""

import os
import re

from tests.conftest import ROOT
from tests.gpucost.profiling.test_live_view import COLUMNS, Terminal
from tests.gpucost.profiling.test_profile import GPUCOST

EXAMPLE = str(ROOT / "examples" / "visual-search.json")


def test_a_narrow_terminal_leaves_columns_out_and_folds_no_amount() -> None:
    """What a person decides by stays whole; what is left out is named."""
    command = [GPUCOST, "plan", EXAMPLE, "--as-of", "2026-11-22", "--no-color"]
    shown = Terminal(command, {**os.environ, "TERM": "xterm-256color"})
    assert shown.code == 0
    rows = [line for line in shown.text if "visual-search/o" in line]
    assert rows
    today, *options = [line.rstrip() for line in rows]
    assert re.search(r" \$[\d,]+$", today)
    assert all(re.search(r"\$[\d,]+ \(\$[\d,]+-[\d,]+\) .*\d%$", line) for line in options)
    said = "".join(shown.text).replace(" ", "")  # the terminal breaks a message anywhere
    assert f"leftoutin{COLUMNS}columns:priceread,perwork" in said
