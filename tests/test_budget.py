"""Counter-weights: how much code there is, and what lies between its files, may only fall.

`python -m tests.test_budget` prints the table; `--vague FOLDER` lists vague names by file.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

from tests.source_tree import PACKAGES, Module, modules

# The most that a figure may be. A change that lowers one lowers its limit here, too.
# Raised once, on 2026-11-27, for what the product learned to do: serving, joined inputs, compare,
# hostile results, ends, stacks from outside, flavors, ledger. From here each may only fall again,
# but for the catalog that publishes itself, which its task gave up to 400 lines. (Vague names:
# counted with the words of both lists, ours and the reviewers', since 2026-11-29. One importer was
# raised by one on that day, when the last circles of imports were cut, and lost again since. The 50
# lines that were added on that day without room were paid back on the next.)
LIMITS: Mapping[str, int] = {
    "lines of code": 70_028,
    "files": 449,
    "modules with one importer": 65,
    "modules in a circle of imports": 0,
    "public classes": 630,
    "document classes": 13,
    "memo dictionaries in frozen values": 0,
    "vague names": 176,
    "uses of Any": 301,
}

# Pronouns, adverbs and participles that say nothing of what a name holds.
# fmt: off
VAGUE = frozenset((
    "one", "ones", "found", "known", "unknown", "asked", "told", "said", "kept", "beside",
    "here", "there", "ours", "theirs", "made", "given", "came", "gone", "meant", "wanted",
    "held", "taken", "left", "seen", "put", "what", "whose", "each", "other", "others", "rest",
    "both", "every", "anything", "everything", "nothing", "something", "away", "along", "alike",
    "aside", "it", "them", "those", "these", "mine", "apart", "worth", "elsewhere", "alone",
    "sifted", "unasked", "whole", "least", "most", "place", "words",
))
# fmt: on
_MEMO = re.compile(r"default_factory=(lambda: )?(dict|defaultdict)\b")


@cache
def product() -> tuple[Module, ...]:
    """Every file of the product."""
    return modules(*PACKAGES)


def lines_of_code(module: Module) -> int:
    """Lines that hold a token, without blank lines, comments and docstrings."""
    docstrings: set[int] = set()
    lines = {
        number
        for number, line in enumerate(module.text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in module.everything:
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node, clean=False):
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr):  # all lines of a text are code
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines - docstrings)


def one_importer() -> list[str]:
    """Modules that one other module of the product imports, and no more."""
    names = {module.imported_as for module in product()}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for module in product():
        for imported in _imported(module):
            target = next((name for name in imported if name in names), None)
            if target is not None:
                importers[target].add(module.imported_as)
    return sorted(name for name, users in importers.items() if len(users) == 1)


def in_circles() -> set[str]:
    """Modules that import each other, for types alone or within a function, too."""
    names = {module.imported_as for module in product()}
    imports = {
        module.imported_as: {
            target
            for imported in _imported(module, module.imported_as)
            if (target := next((name for name in imported if name in names), module.imported_as))
            != module.imported_as
        }
        for module in product()
    }
    circles: set[str] = set()
    while True:
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            circles |= set(error.args[1])
            for name in set(error.args[1]):
                del imports[name]
        else:
            return circles


def _imported(module: Module, importer: str = "") -> Iterator[tuple[str, ...]]:
    """Yield what each import may name; of relative ones only where `importer` is given."""
    for node in module.everything:
        if isinstance(node, ast.ImportFrom) and (importer or not node.level):
            above = importer.split(".")[: -node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{source}.{alias.name}", source
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.name,)


def bound_names(module: Module) -> Iterator[str]:
    """Every name that the module binds: variables, arguments, functions and classes."""
    for node in module.everything:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def classes() -> list[ast.ClassDef]:
    """Every class of the product."""
    return [node for module in product() for node in module.nodes(ast.ClassDef)]


def memos() -> list[str]:
    """Fields of frozen values that are dictionaries to be filled later."""
    return [
        f"{kind.name}.{ast.unparse(node.target)}"
        for kind in classes()
        if "frozen=True" in " ".join(ast.unparse(decorator) for decorator in kind.decorator_list)
        or any(keyword.arg == "frozen" for keyword in kind.keywords)
        for node in kind.body
        if isinstance(node, ast.AnnAssign)
        and node.value is not None
        and ast.unparse(node.annotation).startswith(("dict", "defaultdict"))
        and _MEMO.search(ast.unparse(node.value))
    ]


@cache
def figures() -> Mapping[str, int]:
    """Each figure that has a limit, as it is."""
    names = [name for module in product() for name in bound_names(module)]
    public = [kind.name for kind in classes() if not kind.name.startswith("_")]
    return {
        "lines of code": sum(lines_of_code(module) for module in product()),
        "files": len(product()),
        "modules with one importer": len(one_importer()),
        "modules in a circle of imports": len(in_circles()),
        "public classes": len(public),
        "document classes": sum(name.endswith("Document") for name in public),
        "memo dictionaries in frozen values": len(memos()),
        "vague names": sum(name.strip("_") in VAGUE for name in names),
        "uses of Any": sum(
            node.id == "Any" for module in product() for node in module.nodes(ast.Name)
        ),
    }


def test_the_budgets_hold() -> None:
    """No figure is above its limit; in one test, for each worker would count anew."""
    above = {name: value for name, value in figures().items() if value > LIMITS[name]}
    assert above == {}, "take something away first"


def test_lines_of_code_are_counted() -> None:
    """Neither blank lines nor comments nor docstrings; each line of a text that is a value."""
    text = 'def f():\n    """Do\n\n    it."""\n\n    # now\n'
    text += '    return (\n\n        """a\n\n# b"""\n    )\n'
    module = Module(name="m.py", text=text, tree=ast.parse(text))
    assert lines_of_code(module) == 6  # def, return, the text's three, the closing bracket


def test_every_figure_has_a_limit() -> None:
    """What is counted is limited."""
    assert figures().keys() == LIMITS.keys()


def test_vague_names_are_found_where_they_are_bound() -> None:
    """Variables, arguments and functions count; attributes and calls of others do not."""
    text = "def found(told):\n    for one in told.kept: here, x = one\n    return found"
    module = Module(name="m.py", text=text, tree=ast.parse(text))
    names = [name for name in bound_names(module) if name in VAGUE]
    assert sorted(names) == ["found", "here", "one", "told"]


def _print_vague(folder: str) -> None:
    for module in product():
        if module.name.startswith(folder):
            vague = Counter(n for n in bound_names(module) if n.strip("_") in VAGUE)
            if vague:
                words = ", ".join(f"{name} {count}" for name, count in vague.most_common())
                sys.stdout.write(f"{module.name}: {words}\n")


def _print_table() -> None:
    names = sum(1 for module in product() for _ in bound_names(module))
    for name, value in figures().items():
        share = f" ({value / names:.1%} of {names})" if name == "vague names" else ""
        sys.stdout.write(f"{name:36} {value:7,} of {LIMITS[name]:7,}{share}\n")
    for package in PACKAGES:
        own = [module for module in product() if module.name.startswith(f"{package}/")]
        lines = sum(lines_of_code(module) for module in own)
        sys.stdout.write(f"{package:36} {lines:7,} lines in {len(own)} files\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--vague"]:
        _print_vague(sys.argv[2] if len(sys.argv) > 2 else "")
    else:
        _print_table()
