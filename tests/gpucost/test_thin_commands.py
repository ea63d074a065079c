"""Commands only read the command line and hand on: what is done is a function of its own."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

COMMANDS = sorted((ROOT / "gpucost" / "commands").rglob("*.py"))
MOST_LINES = 40


def _commands(path: Path) -> dict[str, int]:
    """The functions that click calls, with the lines of each besides options and docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: (node.end_lineno or 0) - (node.body[0].end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("command(" in ast.unparse(option) for option in node.decorator_list)
    }


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_is_thin(path: Path) -> None:
    """No function that click calls has more than 40 lines besides its options."""
    assert {name: n for name, n in _commands(path).items() if n > MOST_LINES} == {}
