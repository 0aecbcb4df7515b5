"""
Collects every SQL statement of the program from its source.

Queries and commands run SQL by the methods of a parameter that is annotated ``Reader`` or ``Transaction``, or by a
function of the program that has a parameter ``sql``. The SQL of each such call is evaluated, without running the
function that it is in:

=========================================  ===================================================================
the SQL, or a part of it, is               its values
=========================================  ===================================================================
a literal, a constant of the module        itself
an f-string, ``a + b``                     each combination of the values of its parts
``a if condition else b``                  both
a local variable                           every value that is assigned to it
the variable of a loop                     each item of the tuple
an item of a constant mapping              every value
an attribute of such an item               that of every value
a parameter of the function                the arguments of all callers
``optional_conditions(...)``               each choice among its conditions
a call of another function of the program  its results for every sample of its parameters' types
=========================================  ===================================================================

Anything else is an error, so that no statement is left out. The table and the key of ``insert``, ``put`` and ``update``
are in the source; their columns are the keywords, and the fields of ``**values``: the keywords of the function around,
or what a function returns.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

from attrs import frozen

import pkgrepo
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.fetches import Question
from pkgrepo.storage.catalog.rows import changing, insert, insertion, optional_conditions, put, update

RUNNERS = (Reader.__name__, Transaction.__name__)
METHODS = frozenset(name for name in vars(Reader) | vars(Transaction) if not name.startswith("_"))
WRITERS = (insert, put, update)
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
SAMPLES: Mapping[str, Sequence[Any]] = {
    "bool": (False, True),
    "int": (1, 3),
    "Keys": (None, (), ("a",), ("a", "b")),
    "Question": tuple(
        Question(
            repositories=repositories,
            paths=("main/a",),
            format=format_,
            packages=packages,
            versions=versions,
            digests=digests,
        )
        for repositories in (None, (1, 2))
        for format_ in (None, "npm")
        for packages, versions, digests in ((("a", "b"), None, None), (("a",), ("1", "2"), None), (None, None, (b"",)))
    ),
    "Sequence[Value]": ((), (1,), (1, 2)),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Statement:
    """An SQL text and the method or function that it is given to, with the place in the source."""

    place: str
    runner: str
    sql: str


class Unclear(Exception):
    """The SQL of a call cannot be determined."""


class Source:
    """A module with its syntax tree."""

    def __init__(self, root: Path, path: Path) -> None:
        parts = path.relative_to(root).with_suffix("").parts
        self.name = ".".join(parts).removesuffix(".__init__")
        self._path = path.relative_to(root)
        self.tree = ast.parse(path.read_text())
        self.parents: dict[ast.AST | None, ast.AST] = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._module: ModuleType | None = None

    @property
    def names(self) -> Mapping[str, Any]:
        """Return the values of the module's names."""
        if self._module is None:
            self._module = importlib.import_module(self.name)
        return vars(self._module)

    def place(self, node: Any) -> str:
        return f"{self._path}:{node.lineno}"

    def functions_around(self, node: ast.AST) -> Iterator[Function]:
        """The functions that a node is in, from the innermost."""
        found: ast.AST | None = node
        while (found := self.parents.get(found)) is not None:
            if isinstance(found, Function):
                yield found


def load_sources(package: Path) -> list[Source]:
    """The modules in the folder of a package."""
    gc.disable()  # it would look through millions of nodes again and again, none of which is garbage
    try:
        return [Source(package.parent, path) for path in sorted(package.rglob("*.py"))]
    finally:
        gc.enable()


def find_statements(sources: Sequence[Source]) -> tuple[list[Statement], list[str]]:
    """Return every statement of these modules, and a line for each call whose SQL cannot be determined."""
    finder = _Finder(sources)
    for source in sources:
        for node in ast.walk(source.tree):
            try:
                if isinstance(node, ast.Name) and _is_runner(node, source):
                    finder.runner(node, source)
                elif isinstance(node, ast.Call):
                    finder.call(node, source)
            except Unclear as error:
                finder.errors.append(f"{source.place(node)}: {error}")
    return finder.found, finder.errors


class _Finder:
    def __init__(self, sources: Iterable[Source]) -> None:
        self.found: list[Statement] = []
        self.errors: list[str] = []
        self._callers: dict[Callable[..., Any], list[tuple[ast.Call, Source]]] = {}
        for source in sources:
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Call) and (function := _called(node, source)) is not None:
                    self._callers.setdefault(function, []).append((node, source))

    def runner(self, name: ast.Name, source: Source) -> None:
        """Handle a use of a parameter that runs SQL: it runs a statement, or is passed to another function."""
        match source.parents[name]:
            case ast.Attribute(attr=method) as used if method in METHODS:
                call = source.parents[used]
                if not (isinstance(call, ast.Call) and call.func is used and call.args):
                    raise Unclear(f"{ast.unparse(used)} is not called with SQL")
                self._add(call, method, call.args[0], source)
            case ast.Call() | ast.keyword() | ast.Assign(targets=[ast.Attribute()]):
                pass
            case other:
                raise Unclear(f"cannot tell what is run by {ast.unparse(other)}")

    def call(self, call: ast.Call, source: Source) -> None:
        """Handle any other call; find its SQL if it runs any."""
        function = _called(call, source)
        if function in WRITERS:
            runner = "insert" if function is insert else "send"
            self.found.append(Statement(source.place(call), runner, _written(call, function, source)))
        if function is not None and "sql" in inspect.signature(function).parameters:
            self._add(call, function.__name__, _argument(call, function, "sql"), source)
        by = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS else None
        if by is None or not call.args or (isinstance(by, ast.Name) and _is_runner(by, source)):
            return
        try:
            texts = self.texts(call.args[0], source)
        except Unclear:
            return
        if any(text.lstrip().startswith(VERBS) and len(text.split()) > 1 for text in texts):  # or it is of HTTP
            raise Unclear(f"SQL is run by {ast.unparse(by)}, which is no parameter annotated {' or '.join(RUNNERS)}")

    def _add(self, call: ast.Call, runner: str, sql: ast.expr, source: Source) -> None:
        function = next(source.functions_around(call))
        if source.names.get(function.name) in WRITERS:
            return  # the callers are checked instead
        if isinstance(sql, ast.Name) and sql.id == "sql" and "sql" in _parameters(function):
            if function.name not in source.names:
                raise Unclear(f"{function.name}, which takes sql, is no function of the module")
            return  # the callers of that function are checked instead
        texts = dict.fromkeys(self.texts(sql, source))
        self.found += [Statement(source.place(call), runner, text) for text in texts]

    def texts(self, node: ast.expr, source: Source) -> list[str]:
        """Return all texts that an expression may evaluate to."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return self._joined(
                    [each.value if isinstance(each, ast.FormattedValue) else each for each in parts], source
                )
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], source)
            case ast.IfExp(body=body, orelse=other):
                return [*self.texts(body, source), *self.texts(other, source)]
            case ast.Tuple(elts=items):
                return [text for item in items for text in self.texts(item, source)]
            case ast.Name():
                return self._named(node, source)
            case ast.Subscript() if (mapping := _mapping(node, source)) is not None:
                return _texts_in(tuple(mapping.values()), node)
            case ast.Attribute(value=ast.Name() as item, attr=name):
                return _texts_in(tuple(getattr(value, name) for value in self._items(item, source)), node)
            case ast.Call():
                return self._built(node, source)
        raise Unclear(f"cannot tell what {ast.unparse(node)} is")

    def _joined(self, parts: Sequence[ast.expr], source: Source) -> list[str]:
        # An expression that occurs twice in one text has the same value in both places.
        choices = {ast.dump(part): self.texts(part, source) for part in parts}
        every = (dict(zip(choices, each, strict=True)) for each in product(*choices.values()))
        return ["".join(chosen[ast.dump(part)] for part in parts) for chosen in every]

    def _named(self, node: ast.Name, source: Source) -> list[str]:
        for function in source.functions_around(node):
            if node.id in _parameters(function):
                return self._given(function, node.id, source)
            if values := list(self._assigned(function, node.id, source)):
                return values
        if node.id not in source.names:
            raise Unclear(f"cannot tell what {node.id} is")
        return _texts_in(source.names[node.id], node)

    def _assigned(self, function: Function, name: str, source: Source) -> Iterator[str]:
        """Return the possible values of a local variable or loop variable of a function."""
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Store):
                continue
            match source.parents[node]:
                case ast.Assign(targets=[target], value=value) if target is node:
                    yield from self.texts(value, source)
                case ast.For(iter=items) | ast.comprehension(iter=items):
                    yield from self.texts(items, source)
                case _:
                    raise Unclear(f"{name} gets a value in line {node.lineno} in a way that is not followed")

    def _items(self, item: ast.Name, source: Source) -> Iterator[Any]:
        """Return the possible values of a local variable that is assigned an item of a constant mapping."""
        for node in ast.walk(next(source.functions_around(item))):
            if isinstance(node, ast.Name) and node.id == item.id and isinstance(node.ctx, ast.Store):
                assignment = source.parents[node]
                mapping = _mapping(assignment.value, source) if isinstance(assignment, ast.Assign) else None
                if mapping is None:
                    raise Unclear(f"cannot tell what {item.id} is")
                yield from mapping.values()

    def _given(self, function: Function, parameter: str, source: Source) -> list[str]:
        """Return the values that callers pass for a parameter of a function."""
        target = source.names.get(function.name)
        callers = self._callers.get(target, ())
        if not callers:
            raise Unclear(f"nobody is seen to call {function.name}, which takes {parameter}")
        return [text for call, by in callers for text in self.texts(_argument(call, target, parameter), by)]

    def _built(self, node: ast.Call, source: Source) -> list[str]:
        """Return the texts that a function of the program may return."""
        function = _called(node, source)
        if function is None:
            raise Unclear(f"{ast.unparse(node.func)} is no function of the program")
        if function is optional_conditions:
            conditions = self.texts(node.args[0], source)
            return [optional_conditions(conditions, chosen) for chosen in product((None, 0), repeat=len(conditions))]
        choices = [
            self.texts(_argument(node, function, parameter.name), source)
            if parameter.annotation == "str"
            else _samples(parameter.annotation)
            for parameter in inspect.signature(function).parameters.values()
        ]
        return [function(*each) for each in product(*choices)]


def _is_runner(name: ast.Name, source: Source) -> bool:
    for function in source.functions_around(name):
        if name.id in (parameters := _parameters(function)):
            annotation = parameters[name.id].annotation
            return annotation is not None and ast.unparse(annotation) in RUNNERS
    return False


def _mapping(node: ast.expr, source: Source) -> Mapping[Any, Any] | None:
    """Return the constant mapping that an expression takes an item of, or None if it is something else."""
    match node:
        case ast.Subscript(value=ast.Name(id=name)):
            found = source.names.get(name)
            return found if isinstance(found, Mapping) else None
    return None


def _parameters(function: Function) -> dict[str, ast.arg]:
    arguments = function.args
    return {each.arg: each for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _called(call: ast.Call, source: Source) -> Callable[..., Any] | None:
    """Return the called function, if it is a module-level function of the program."""
    match call.func:
        case ast.Name(id=name):
            found = source.names.get(name)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            found = getattr(source.names.get(module), name, None)
        case _:
            return None
    return found if inspect.isfunction(found) and found.__module__.startswith(pkgrepo.__name__) else None


def _written(call: ast.Call, function: Callable[..., Any], source: Source) -> str:
    """Return the statement of a call of ``insert``, ``put`` or ``update``."""
    places = call.args[1:2] if function is update else call.args[1:]
    texts = [each.value for each in places if isinstance(each, ast.Constant)]
    if len(texts) != len(places):
        raise Unclear(f"cannot tell into what {ast.unparse(call)} writes")
    pairs = [(each.arg and ast.Constant(each.arg), each.value) for each in call.keywords]
    names = tuple(dict.fromkeys(_columns(pairs, source)))
    if function is update:
        return changing(texts[0], names)
    table, key = (*texts, "")[:2]
    return insertion(table, names, key) + (" RETURNING id" if function is insert else "")


def _columns(pairs: Iterable[tuple[Any, ast.expr]], source: Source) -> Iterator[str]:
    """Yield the keys of the keywords of a call or of a dict; a pair without a key is ``**value``."""
    for key, value in pairs:
        match key, value:
            case ast.Constant(value=name), _:
                yield name
            case None, ast.Dict(keys=keys, values=values):
                yield from _columns(zip(keys, values, strict=True), source)
            case None, ast.Name(id=name):
                around = next(source.functions_around(value))
                given = around.args.kwarg
                if given is None or given.arg != name:
                    raise Unclear(f"cannot tell what the keys of {name} are")
                (fields,) = get_args(get_type_hints(source.names[around.name])[name])
                yield from fields.__annotations__
            case None, ast.Call() if (made := _called(value, source)) is not None:
                yield from get_type_hints(made)["return"].__annotations__
            case _:
                raise Unclear(f"cannot tell what the keys of {ast.unparse(value)} are")


def _argument(call: ast.Call, function: Callable[..., Any], parameter: str) -> ast.expr:
    """Return the argument that a call passes for a parameter of a function, or the default."""
    parameters = inspect.signature(function).parameters
    for name, given in [*zip(parameters, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]:
        if isinstance(given, ast.Starred) or name is None:
            break
        if name == parameter:
            return given
    else:
        if isinstance(default := parameters[parameter].default, str):
            return ast.Constant(default)
    raise Unclear(f"cannot tell what {ast.unparse(call)} gives for {parameter}")


def _samples(annotation: Any) -> Sequence[Any]:
    if annotation not in SAMPLES:
        raise Unclear(f"there are no samples of {annotation}")
    return SAMPLES[annotation]


def _texts_in(value: Any, node: ast.expr) -> list[str]:
    match value:
        case str():
            return [value]
        case tuple():
            return [text for each in value for text in _texts_in(each, node)]
    raise Unclear(f"{ast.unparse(node)} is no text")
