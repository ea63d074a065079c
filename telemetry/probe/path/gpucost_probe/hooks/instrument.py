"""Makes a function tell when it begins and ends, without standing in its way.

The function gets another code object, compiled from its own source with calls added at its begin
and its ends. It stays the same object with the same signature, is found by pickle and inspect as
before, adds no frame to a traceback, and warnings keep their line. Where the source is not at hand
or is not what runs, the function is wrapped instead: the same, but for one more line in a traceback
that passes through it.
"""

from __future__ import annotations
import __future__ as features

import ast
import functools
import inspect
import linecache
import sys
import types
from threading import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    from ..foreign import Foreign

    _Token = TypeVar("_Token")

_HOOK, _TOKEN, _VALUE = "_gpucost_hook", "_gpucost_token", "_gpucost_value"
_MARK = "gpucost: the hook is put here"
_FEATURES = functools.reduce(
    lambda flags, name: flags | getattr(features, name).compiler_flag, features.all_feature_names, 0
)
_UNUSUAL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class NotInstrumentedError(Exception):
    """The code of the function cannot be extended."""


def _ignore(*_: object) -> None:
    pass


class Hook:
    """What is called around a function; an error in here switches the hook off, told once.

    Args:
        tell: told of the error.
        before: gets arguments of the function; what it returns is handed to the other two.
        after: gets the value, too, that the function returned.
        failed: called where the function raised.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        before: Callable[..., _Token],
        after: Callable[[_Token, Any], None] = _ignore,
        failed: Callable[[_Token], None] = _ignore,
    ) -> None:
        self._tell = tell
        self._parts: tuple[Callable[..., object], ...] = (before, after, failed)
        self.name = ""
        self.alive = True

    def begin(self, *arguments: object) -> object:
        """Call `before`, guarded."""
        return self._guarded(0, *arguments)

    def finish(self, token: object, value: object) -> None:
        """Call `after`, guarded; nothing where `fail` was called before."""
        if token is not self:
            self._guarded(1, token, value)

    def fail(self, token: object) -> Hook:
        """Call `failed`, guarded, and return the token that says so."""
        self._guarded(2, token)
        return self

    def _guarded(self, part: int, *arguments: object) -> object:
        if self.alive:
            try:
                return self._parts[part](*arguments)
            except Exception as error:
                self.alive = False
                self._tell("the hook of %s stepped aside: %r" % (self.name, error))
        return None


class Outermost:
    """Tells the outermost call of some functions in each thread from calls within it."""

    def __init__(self) -> None:
        self._inside: dict[int, types.CodeType] = {}

    def enter(self) -> bool:
        """Return whether the call that a hook's `before` is told about is the outermost.

        A call that was broken off before its hook knew (an interrupt) is not taken for one that
        goes on: the stack decides.
        """
        thread = get_ident()
        # The frames: enter, before, _guarded, begin, function.
        frame, outer = sys._getframe(4), self._inside.get(thread)
        if outer is not None and is_within(frame, outer):
            return False
        self._inside[thread] = frame.f_code
        return True

    def leave(self) -> None:
        """Take that the outermost call ended."""
        self._inside.pop(get_ident(), None)


def is_within(frame: types.FrameType, code: types.CodeType) -> bool:
    """Return whether the call of a frame happens within a call of a function with this code."""
    outer = frame.f_back
    while outer is not None:
        if outer.f_code is code:
            return True
        outer = outer.f_back
    return False


def attach(owner: Foreign, name: str, arguments: tuple[str, ...], hook: Hook) -> None:
    """Attach a hook to the function `name` of a class or module.

    Args:
        owner: class or module that defines the function.
        name: of the function.
        arguments: names of the parameters that the hook's `before` gets.
        hook: to be called around it.
    """
    function: types.FunctionType = vars(owner)[name]
    hook.name = "%s.%s" % (owner.__name__, name)
    try:
        function.__code__ = _extended(function, hook, arguments)
    except Exception:
        setattr(owner, name, _wrapped(function, hook, arguments))


def _wrapped(
    function: types.FunctionType, hook: Hook, arguments: tuple[str, ...]
) -> Callable[..., object]:
    names = inspect.getfullargspec(function).args

    @functools.wraps(function)
    def wrapper(*positional: object, **named: object) -> object:
        bound = {**dict(zip(names, positional)), **named}
        token = hook.begin(*[bound.get(argument) for argument in arguments])
        try:
            value = function(*positional, **named)
        except BaseException:
            hook.fail(token)
            raise
        hook.finish(token, value)
        return value

    return wrapper


def _extended(
    function: types.FunctionType, hook: Hook, arguments: tuple[str, ...]
) -> types.CodeType:
    """Return the code of the function with the calls of the hook in it."""
    code = function.__code__
    if code.co_flags & _UNUSUAL or not set(arguments) <= set(code.co_varnames):
        raise NotInstrumentedError
    tree, definition = _parsed(function)
    plain = _compiled(tree, code)
    if (plain.co_code, plain.co_names) != (code.co_code, code.co_names):
        raise NotInstrumentedError  # the source is not what runs
    _add_calls(definition, arguments)
    extended = _compiled(tree, code)
    consts = tuple(hook if const == _MARK else const for const in extended.co_consts)
    extended = extended.replace(co_consts=consts)
    # Code carries its qualified name from Python 3.11 on.
    named = hasattr(code, "co_qualname")
    return extended.replace(co_qualname=code.co_qualname) if named else extended


def _parsed(function: types.FunctionType) -> tuple[ast.Module, ast.FunctionDef]:
    """Return the syntax tree of a function, at the lines of its file, and its definition."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    block = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    line = code.co_firstlineno - 1
    inner = block[:1].isspace()
    if inner:
        # A method: the name of its class decides how private names are read. Or a closure.
        free, parents = ", ".join(code.co_freevars), function.__qualname__.split(".")
        first = "def around(%s)" % free if free else "class " + parents[-2]
        block = "%s:\n%s" % (first, block)
        line -= 1
    # Python compiles a call of an imported module's function in another way than other calls.
    modules = [
        n for n in code.co_names if isinstance(function.__globals__.get(n), types.ModuleType)
    ]
    tree = ast.parse("import %s\n%s" % (", ".join(modules or ["sys"]), block))
    ast.increment_lineno(tree, line - 1)
    outer = tree.body[-1]
    definition = (
        outer.body[0] if inner and isinstance(outer, (ast.ClassDef, ast.FunctionDef)) else outer
    )
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
    """Makes `return X` of one function keep X for the hook."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is not None:
            target = ast.Name(id=_VALUE, ctx=ast.Store())
            named = ast.NamedExpr(target=target, value=node.value)
            node.value = ast.copy_location(named, node.value)
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave  # noqa: N815


_AROUND = """
{hook} = {mark!r}
{value} = None
{token} = {hook}.begin({arguments})
try:
    pass
except:
    {token} = {hook}.fail({token})
    raise
finally:
    {hook}.finish({token}, {value})
"""


def _add_calls(definition: ast.FunctionDef, arguments: tuple[str, ...]) -> None:
    """Put the calls of the hook around the body of a function."""
    body: list[ast.stmt] = [_Returns().visit(statement) for statement in definition.body]
    doc = body[:1] if ast.get_docstring(definition, clean=False) is not None else []
    names = {"hook": _HOOK, "mark": _MARK, "value": _VALUE, "token": _TOKEN}
    added = ast.parse(_AROUND.format(arguments=", ".join(arguments), **names)).body
    for statement in added:
        for node in ast.walk(statement):
            ast.copy_location(node, definition)
    around = added[-1]
    if isinstance(around, ast.Try):
        around.body = body[len(doc) :] or around.body
    definition.body = [*doc, *added]
    ast.fix_missing_locations(definition)
