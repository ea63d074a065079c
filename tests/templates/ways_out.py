"""Who makes the texts that leave, found by where their results go, whatever they are called.

A way out is a call that prints, writes or sends, or that hands a text of its caller on to one. Who
makes a text that reaches one of them past the gates is a renderer: a stranger's text in it could
act there.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from tests.source_tree import Module

PASS = {"prose_lines", "_draw", "_as_csv"}
"""Who passes every text through a gate."""

GATES = {"printable", "for_markdown", "for_file", "for_csv", "to_text", "dumps"} | PASS
"""What comes out of these cannot act: the gates themselves, JSON, and who passes a gate."""

_OUT = {"print", "echo", "write", "writelines", "write_text", "write_bytes", "request", "sendall"}
_TEXT = re.compile(r"\b(str|bytes|_T)\b")
_NO_TEXT = ("dict", "Mapping", "bool")
Where = tuple[str, str]
"""A module, as it is imported, and a function of it."""


class _Function:
    """A function, without those that are in it."""

    def __init__(self, module: Module, node: ast.FunctionDef) -> None:
        self.module, self.node, self.name = module.imported_as, node, node.name
        self.calls = [one for one in self.nodes() if isinstance(one, ast.Call)]

    @cached_property
    def makes_text(self) -> bool:
        """Whether it returns a text, or several."""
        returned = ast.unparse(self.node.returns) if self.node.returns else ""
        return bool(_TEXT.search(returned)) and not returned.startswith(_NO_TEXT)

    @cached_property
    def parameters(self) -> list[tuple[str, bool]]:
        """The name of each, and whether it is a text, or several."""
        given = self.node.args
        return [
            (a.arg, a.annotation is not None and bool(_TEXT.search(ast.unparse(a.annotation))))
            for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        ]

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all that is in it."""
        todo = [*ast.iter_child_nodes(self.node)]
        while todo:
            node = todo.pop()
            yield node
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                todo += ast.iter_child_nodes(node)

    @cached_property
    def values(self) -> dict[str, list[ast.expr]]:
        """What each name in it may hold."""
        values = defaultdict[str, list[ast.expr]](list)
        for target, given in _bindings(self.nodes()):
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    values[node.id] += given
        return values


class Source:
    """The functions of some modules, and which of them hand texts of their callers on to leave."""

    def __init__(self, modules: Iterable[Module]) -> None:
        functions = [_Function(m, node) for m in modules for node in m.nodes(ast.FunctionDef)]
        self.functions = {(one.module, one.name): one for one in functions}
        self._all = functions
        self._imports = {
            one.imported_as: {name: where for where, name in _imports(one)} for one in modules
        }
        self._texts = {one.name for one in functions if one.makes_text}
        self._out: dict[Where, set[str]] = {}
        while self._out != (more := dict(self._handing_on())):
            self._out = more

    def renderers(self) -> dict[str, set[str]]:
        """Return each, with the functions in which its text leaves."""
        found = defaultdict[str, set[str]](set)
        for function in self._all:
            for name in self._leaving(function)[1]:
                found[name].add(f"{function.module}.{function.name}")
        return found

    def _handing_on(self) -> Iterator[tuple[Where, set[str]]]:
        for one in self._all:
            names, _ = self._leaving(one)
            if texts := {name for name, is_text in one.parameters if is_text} & names:
                yield (one.module, one.name), texts

    def _leaving(self, function: _Function) -> tuple[set[str], set[str]]:
        """Return the names and the makers of texts in what its ways out are given."""
        names, makers = set[str](), set[str]()
        todo = [text for call in function.calls for text in self._texts_of(function, call)]
        while todo:
            for node in _past_gates(todo.pop()):
                if isinstance(node, ast.Name) and node.id not in names:
                    names.add(node.id)
                    todo += function.values[node.id]
                elif isinstance(node, ast.Call) and self._makes_text(function, node):
                    makers.add(_name(node))
        return names, makers

    def _texts_of(self, function: _Function, call: ast.Call) -> list[ast.expr]:
        """Return the arguments of a call that leave; none where it is no way out."""
        name = _name(call)
        if name in _OUT:
            return [*call.args, *(keyword.value for keyword in call.keywords)]
        where = self._where(function.module, call.func)
        leaving = self._out.get(where, ())
        by_place = zip(self.functions[where].parameters if leaving else (), call.args, strict=False)
        by_name = ((keyword.arg, keyword.value) for keyword in call.keywords)
        given = (*((parameter[0], value) for parameter, value in by_place), *by_name)
        return [value for parameter, value in given if parameter in leaving]

    def _makes_text(self, function: _Function, call: ast.Call) -> bool:
        """Whether what is called returns a text; of a method any of its name."""
        known = self.functions.get(self._where(function.module, call.func))
        return known.makes_text if known else _name(call) in self._texts

    def _where(self, module: str, called: ast.expr) -> Where:
        """Return the module of a function that is called by its name, or as its module's."""
        imports = self._imports[module]
        match called:
            case ast.Name(id=name):
                return imports.get(name, (module, name))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in imports:
                return ".".join(imports[owner]), name
        return "", ""


def exported(modules: Iterable[Module], package: str) -> set[str]:
    """Return what makes texts in a package and is imported by another one."""
    own = {m.imported_as: m for m in modules if m.name.startswith(f"{package}/")}
    names = set[str]()
    for one in modules:
        for (where, name), _ in _imports(one) if one.imported_as not in own else ():
            inner = own.get(f"{where}.{name}")
            names |= {name} if where in own else set()
            names |= {f.name for f in inner.nodes(ast.FunctionDef)} if inner else set()
    texts = {one.name for one in Source(own.values()).functions.values() if one.makes_text}
    return {name for name in names & texts if not name.startswith("_")}


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Yield the names, as a tree, and what they are bound to."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, [value]) for target in targets)
            case ast.AugAssign() | ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
                yield node.target, [node.value]
            case ast.For() | ast.comprehension():
                yield node.target, [node.iter]
            case ast.Call(func=ast.Attribute(value=ast.Name() as target), args=given):
                yield target, given  # a list that grows


def _imports(module: Module) -> Iterator[tuple[Where, str]]:
    for node in module.nodes(ast.ImportFrom):
        for alias in node.names:
            yield (node.module or "", alias.name), alias.asname or alias.name


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


def _past_gates(node: ast.AST) -> Iterator[ast.AST]:
    if not (isinstance(node, ast.Call) and _name(node) in GATES):
        yield node
        for inner in ast.iter_child_nodes(node):
            yield from _past_gates(inner)
