"""Commands only read the command line and hand on: what is done lies beside them."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

COMMANDS = sorted((ROOT / "gpucost" / "commands").rglob("*.py"))
MOST_LINES = 80


def _lines(node: ast.AST) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined] # of statements


def _code(path: Path) -> set[int]:
    """The lines of a module without blank ones, comments, imports, docstrings and options."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = {
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            code -= _lines(node)
        if isinstance(node, ast.FunctionDef):
            for option in node.decorator_list:
                code -= _lines(option)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node, clean=False
        ):
            code -= _lines(node.body[0])
    return code


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_is_thin(path: Path) -> None:
    """No command has more than 80 lines of code besides its options."""
    assert len(_code(path)) <= MOST_LINES
