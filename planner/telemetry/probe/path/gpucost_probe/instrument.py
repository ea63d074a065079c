"""Makes a function tell when it begins and ends, without standing in its way.

The function gets another code object, compiled from its own source with calls added at its begin and its
ends. It stays the same object with the same signature, is found by pickle and inspect as before, adds no
frame to a traceback, and warnings keep their line. Where the source is not at hand or is not what runs, the
function is wrapped instead: the same, but for one more line in a traceback that passes through it.
"""

from __future__ import annotations

import __future__ as features
import ast
import functools
import inspect
import linecache
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_HOOK, _TOKEN = "_gpucost_hook", "_gpucost_token"
_MARK = "gpucost: the hook is put here"
_FEATURES = functools.reduce(
    lambda flags, name: flags | getattr(features, name).compiler_flag,
    features.all_feature_names,
    0,
)
_UNUSUAL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class NotInstrumentedError(Exception):
    """The code of the function cannot be extended."""


class Hook:
    """What is called around a function; an error in here switches the hook off, and is told once."""

    def __init__(self, tell: Callable[[str], None], name: str) -> None:
        self._tell = tell
        self._name = name
        self.alive = True

    def before(self, *arguments: Any) -> Any:
        """Return a token that is handed to `after` or `failed`."""

    def after(self, token: Any, value: Any) -> None:
        """Take the value that the function returned."""

    def failed(self, token: Any) -> None:
        """Learn that the function raised."""

    def begin(self, *arguments: Any) -> Any:
        """Call `before`, guarded."""
        if self.alive:
            try:
                return self.before(*arguments)
            except Exception as error:  # noqa: BLE001 - never the program's trouble
                self._stop(error)
        return None

    def finish(self, token: Any, value: Any) -> Any:
        """Call `after`, guarded, and return the value."""
        if self.alive:
            try:
                self.after(token, value)
            except Exception as error:  # noqa: BLE001 - never the program's trouble
                self._stop(error)
        return value

    def fail(self, token: Any) -> None:
        """Call `failed`, guarded."""
        if self.alive:
            try:
                self.failed(token)
            except Exception as error:  # noqa: BLE001 - never the program's trouble
                self._stop(error)

    def _stop(self, error: Exception) -> None:
        self.alive = False
        self._tell("the hook of %s stepped aside: %r" % (self._name, error))


def attach(owner: Any, name: str, hook: Hook, arguments: tuple[str, ...]) -> None:
    """Attach a hook to the function `name` of a class or module.

    Args:
        owner: class or module that defines the function.
        name: of the function.
        hook: its `before` gets the arguments with these names.
        arguments: names of parameters of the function.
    """
    function = vars(owner)[name]
    try:
        function.__code__ = _extended(function, hook, arguments)
    except Exception:  # noqa: BLE001 - any doubt: the plain way
        setattr(owner, name, _wrapped(function, hook, arguments))


def _wrapped(function: Any, hook: Hook, arguments: tuple[str, ...]) -> Any:
    names = inspect.getfullargspec(function).args

    @functools.wraps(function)
    def wrapper(*given: Any, **named: Any) -> Any:
        bound = dict(zip(names, given), **named)
        token = hook.begin(*[bound.get(argument) for argument in arguments])
        try:
            value = function(*given, **named)
        except BaseException:
            hook.fail(token)
            raise
        return hook.finish(token, value)

    return wrapper


def _extended(function: Any, hook: Hook, arguments: tuple[str, ...]) -> types.CodeType:
    """Return the code of the function with the calls of the hook in it."""
    code: types.CodeType = function.__code__
    if code.co_flags & _UNUSUAL or not set(arguments) <= set(code.co_varnames):
        raise NotInstrumentedError
    tree, definition = _parsed(function)
    plain = _compiled(tree, code)
    if (plain.co_code, plain.co_names) != (code.co_code, code.co_names):
        raise NotInstrumentedError  # the source is not what runs
    _add_calls(definition, arguments)
    extended = _compiled(tree, code)
    consts = tuple(hook if const == _MARK else const for const in extended.co_consts)
    return extended.replace(co_consts=consts, **_naming(code))


def _naming(code: types.CodeType) -> dict[str, Any]:
    """Return the qualified name as code carries it (Python 3.11 and later)."""
    return {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}


def _parsed(function: Any) -> tuple[ast.Module, ast.FunctionDef]:
    """Return the syntax tree of a function, at the lines of its file, and its definition therein."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    block = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    line = code.co_firstlineno - 1
    if block[:1].isspace():  # a method: the name of its class decides how private names are read
        block = "class %s:\n%s" % (function.__qualname__.split(".")[-2], block)
        line -= 1
    # Python compiles a call of an imported module's function in another way than other calls.
    modules = [n for n in code.co_names if isinstance(function.__globals__.get(n), types.ModuleType)]
    tree = ast.parse("import %s\n%s" % (", ".join(modules or ["sys"]), block))
    ast.increment_lineno(tree, line - 1)
    first = tree.body[-1]
    (definition,) = first.body if isinstance(first, ast.ClassDef) else (first,)
    if not isinstance(definition, ast.FunctionDef):
        raise NotInstrumentedError
    return tree, definition


def _compiled(tree: ast.Module, like: types.CodeType) -> types.CodeType:
    """Return the code of the one function in a tree, compiled as its file was."""
    unit = compile(tree, like.co_filename, "exec", like.co_flags & _FEATURES, dont_inherit=True)
    units = [unit]
    for unit in units:
        for const in unit.co_consts:
            if isinstance(const, types.CodeType):
                if const.co_name == like.co_name and const.co_freevars == like.co_freevars:
                    return const
                units.append(const)
    raise NotInstrumentedError


class _Returns(ast.NodeTransformer):
    """Makes `return X` of one function hand X to the hook first."""

    def visit_Return(self, node: ast.Return) -> ast.Return:  # noqa: N802 - the name that ast calls
        value = node.value or ast.copy_location(ast.Constant(value=None), node)
        token = ast.Name(id=_TOKEN, ctx=ast.Load())
        node.value = ast.copy_location(_call("finish", token, value), value)
        return ast.fix_missing_locations(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:  # noqa: N802
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:  # noqa: N802
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:  # noqa: N802
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:  # noqa: N802
        return node


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    hook = ast.Attribute(
        value=ast.Name(id=_HOOK, ctx=ast.Load()), attr=method, ctx=ast.Load()
    )
    return ast.Call(func=hook, args=list(arguments), keywords=[])


def _add_calls(definition: ast.FunctionDef, arguments: tuple[str, ...]) -> None:
    """Put the calls of the hook into the definition of a function."""
    token = ast.Name(id=_TOKEN, ctx=ast.Load())
    names: list[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in arguments]
    body = [_Returns().visit(statement) for statement in definition.body]
    doc = body[:1] if ast.get_docstring(definition, clean=False) is not None else []
    body = body[len(doc) :] or [ast.Pass()]
    failed = ast.ExceptHandler(
        type=None, name=None, body=[ast.Expr(_call("fail", token)), ast.Raise(exc=None, cause=None)]
    )
    done = ast.Expr(_call("finish", token, ast.Constant(value=None)))
    if isinstance(body[-1], ast.Return):
        rest = body
    else:
        rest = [*body, done]
    added = [
        ast.Assign(targets=[ast.Name(id=_HOOK, ctx=ast.Store())], value=ast.Constant(value=_MARK)),
        ast.Assign(targets=[ast.Name(id=_TOKEN, ctx=ast.Store())], value=_call("begin", *names)),
        ast.Try(body=rest, handlers=[failed], orelse=[], finalbody=[]),
    ]
    for statement in added:
        ast.copy_location(statement, definition)
    definition.body = [*doc, *added]
    ast.fix_missing_locations(definition)
