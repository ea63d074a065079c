"""The Python of this tree, each file read, parsed and walked once, for tests of the code itself."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, kw_only=True)
class Module:
    """A file of Python.

    Attributes:
        name: its path from the root, with slashes.
        text: what it holds.
        tree: the same, parsed.
    """

    name: str
    text: str
    tree: ast.Module

    @property
    def path(self) -> Path:
        """Where it lies."""
        return ROOT / self.name

    @property
    def imported_as(self) -> str:
        """Its name in an import."""
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def everything(self) -> tuple[ast.AST, ...]:
        """Every node, walked once."""
        return tuple(ast.walk(self.tree))

    def nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """Return the nodes of these kinds."""
        return (node for node in self.everything if isinstance(node, kinds))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return every function, nested ones included."""
        return self.nodes(ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Return every file of these folders."""
    if len(folders) != 1:
        return tuple(module for folder in folders for module in modules(folder))
    gc.disable()  # a million nodes, none of them garbage: looking took as long as parsing
    try:
        return tuple(_module(path) for path in sorted((ROOT / folders[0]).rglob("*.py")))
    finally:
        gc.freeze()
        gc.enable()


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    return Module(name=path.relative_to(ROOT).as_posix(), text=text, tree=ast.parse(text))
