"""
Slips that somebody could make in a file of Python: what each one replaces, as spans of the text.

Nothing is changed where no test should look: in texts and the arguments of what is raised, in what is logged, in
``__str__`` and ``__repr__``, in annotations and in interfaces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from attrs import frozen

NEGATED = {"==": "!=", "<": ">=", ">": "<=", "<=": ">", ">=": "<", "in": "not in", "is": "is not"}
NEGATED |= {value: key for key, value in NEGATED.items() if key in ("==", "in", "is")}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWAPPED = {"any": "all", "all": "any", "min": "max", "max": "min"}
OPERATOR = re.compile(rb"\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b|[=!<>]=|[<>]")
CONNECTIVE = re.compile(rb"\b(?:and|or)\b")
CHECKS = re.compile(r"_?(?:check|refuse|require|ensure|must|assert|verify|guard|deny|forbid|authorize)(?:_|$)")
LOGS = re.compile(r"_?(?:log|logger)")
UNTESTED = frozenset({"__str__", "__repr__", "__hash__"})
UNREACHABLE = frozenset({"AssertionError", "NotImplementedError", "assert_never"})
SMALL = 16  # a larger number is a limit, which is one more or less without harm


@frozen
class Slip:
    """The bytes from C{start} to C{end} of a file are replaced; C{line} is where, C{kind} what somebody did."""

    kind: str
    line: int
    start: int
    end: int
    text: bytes

    def apply(self, source: bytes) -> bytes:
        """The file with this slip."""
        return source[: self.start] + self.text + source[self.end :]


Defaults = Mapping[str, Set[str]]  # the parameters that every function or class of a name gives a default


def defaults(trees: Iterable[ast.Module]) -> Defaults:
    """What may be left out in calls, by the callee's name; where two of the same name differ, what both let."""
    optional: dict[str, set[str]] = {}
    wanted: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given, asked = _parameters(node.args)
            elif isinstance(node, ast.ClassDef):
                given, asked = _fields(node)
            else:
                continue
            optional.setdefault(node.name, set()).update(given)
            wanted.setdefault(node.name, set()).update(asked)
    return {name: given - wanted[name] for name, given in optional.items()}


def _parameters(arguments: ast.arguments) -> tuple[set[str], set[str]]:
    names = [each.arg for each in arguments.posonlyargs + arguments.args]
    given = set(names[len(names) - len(arguments.defaults) :]) if arguments.defaults else set()
    given |= {each.arg for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value}
    return given, {*names, *(each.arg for each in arguments.kwonlyargs)} - given


def _fields(node: ast.ClassDef) -> tuple[set[str], set[str]]:
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    given = {each.target.id for each in fields if each.value and isinstance(each.target, ast.Name)}
    return given, {each.target.id for each in fields if isinstance(each.target, ast.Name)} - given


def slips(source: bytes, optional: Defaults) -> Sequence[Slip]:
    """All slips of a file that leave it a file of Python and mean something else, in the order of the text."""
    tree = ast.parse(source)
    unchanged = ast.dump(tree)
    found = []
    for each in _Finder(source, optional).of_module(tree):
        try:
            if ast.dump(ast.parse(each.apply(source))) != unchanged:
                found.append(each)
        except SyntaxError:
            continue
    return sorted(dict.fromkeys(found), key=lambda each: (each.start, each.kind))


class _Finder:
    def __init__(self, source: bytes, optional: Defaults) -> None:
        self._source = source
        self._optional = optional
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def of_module(self, tree: ast.Module) -> Iterator[Slip]:
        for node in _tested(tree):
            yield from self._of(node)

    def _of(self, node: ast.AST) -> Iterator[Slip]:
        match node:
            case ast.Compare(ops=[_]):
                yield from self._compare(node)
            case ast.BoolOp():
                yield from self._connected(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                start, _ = self._span(node)
                gap = self._source[start + 3 : self._span(operand)[0]]
                yield Slip("not removed", node.lineno, start, start + 3 + len(gap) - len(gap.lstrip()), b"")
            case ast.Return(value=ast.Constant(value=bool() as value) as constant):
                yield self._replaced("returns the opposite", constant, repr(not value).encode())
            case ast.Raise() if _name(node.exc) not in UNREACHABLE:
                yield self._replaced("raise removed", node, b"pass")
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                if CHECKS.match(_name(call) or ""):
                    yield self._replaced("check removed", node, b"pass")
            case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=int() as value) as number):
                yield from self._number(number, value)
            case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
                for bound in (lower, upper):
                    if isinstance(bound, ast.Constant) and isinstance(bound.value, int):
                        yield from self._number(bound, bound.value)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield from self._dropped(test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self._dropped(test)
                    yield self._replaced("filter dropped", test, b"True")
            case ast.FunctionDef(returns=ast.Name(id="bool")) | ast.AsyncFunctionDef(returns=ast.Name(id="bool")):
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value:
                        yield from self._dropped(each.value)
        if isinstance(node, ast.Call):
            yield from self._call(node)

    def _compare(self, node: ast.Compare) -> Iterator[Slip]:
        start, end = self._span(node.left)[1], self._span(node.comparators[0])[0]
        if (found := OPERATOR.search(self._source, start, end)) is None or b"#" in self._source[start:end]:
            return
        operator = " ".join(found.group().decode().split())
        at = self._line(found.start())
        yield Slip("compare negated", at, *found.span(), NEGATED[operator].encode())
        if operator in BOUNDARY:
            yield Slip("boundary", at, *found.span(), BOUNDARY[operator].encode())
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, int):
            yield from self._number(right, right.value)

    def _connected(self, node: ast.BoolOp) -> Iterator[Slip]:
        other = b"or" if isinstance(node.op, ast.And) else b"and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            found = CONNECTIVE.search(self._source, self._span(left)[1], self._span(right)[0])
            if found:
                yield Slip("and/or", self._line(found.start()), *found.span(), other)

    def _dropped(self, test: ast.expr) -> Iterator[Slip]:
        """A condition of several that is left out: it is what does not count, so that brackets around it stay."""
        for node in ast.walk(test):
            if not isinstance(node, ast.BoolOp):
                continue
            neutral = b"True" if isinstance(node.op, ast.And) else b"False"
            for value in node.values:
                if not any(isinstance(each, ast.NamedExpr) for each in ast.walk(value)):
                    yield self._replaced("condition dropped", value, neutral)

    def _call(self, node: ast.Call) -> Iterator[Slip]:
        if isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            other = SWAPPED[node.func.id]
            yield self._replaced(f"{node.func.id}/{other}", node.func, other.encode())
        optional = self._optional.get(_name(node) or "", frozenset())
        for keyword in node.keywords:
            if keyword.arg in optional:
                start, end = self._span(keyword)
                after = re.compile(rb"\s*,\s*").match(self._source, end)
                before = re.search(rb",\s*\Z", self._source[:start])
                if after:
                    end = after.end()
                elif before:
                    start = before.start()
                yield Slip("argument dropped", keyword.lineno, start, end, b"")

    def _number(self, node: ast.Constant, value: int) -> Iterator[Slip]:
        if not isinstance(value, bool) and 0 <= value <= SMALL:
            yield self._replaced("one more", node, str(value + 1).encode())
            if value:
                yield self._replaced("one less", node, str(value - 1).encode())

    def _replaced(self, kind: str, node: ast.expr | ast.stmt, text: bytes) -> Slip:
        return Slip(kind, node.lineno, *self._span(node), text)

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _line(self, offset: int) -> int:
        return self._source.count(b"\n", 0, offset) + 1


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that no test should be about."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(node, ast.Raise) or _untested(child)):
                yield from _tested(child)


def _untested(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in UNTESTED or any(_name(each) == "overload" for each in node.decorator_list)
        case ast.ClassDef():
            return any((_name(each) or "").endswith(("Interface", "Protocol")) for each in node.bases)
        case ast.If(test=test):
            return _name(test) == "TYPE_CHECKING"
        case ast.Call(func=ast.Attribute(value=receiver)):
            return LOGS.fullmatch(_name(receiver) or "") is not None
        case ast.Call():
            return _name(node) in ("cast", "TypeVar")
    return isinstance(node, ast.JoinedStr | ast.Assert)


def _name(node: ast.AST | None) -> str | None:
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None
