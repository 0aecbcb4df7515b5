"""
The extension of Jinja that translates the texts of templates, where ``marking.py`` has put ``trans`` around them.

A page in the language of the source is made of the template as it stands, at no cost; of one with marks there is one
more compiled template, for all other languages. Each language has an environment of its own.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from types import CodeType
from typing import Any, cast

from jinja2 import BaseLoader, Environment, Template, nodes, pass_context
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from markupsafe import Markup

from pkgrepo.web.rendering.languages import Language
from pkgrepo.web.rendering.marking import with_marks


@pass_context  # which keeps a constant text from being written by the environment that compiles it
def translated(context: Context, message: str, values: Mapping[str, Any]) -> Markup:
    """The filter that writes a text in the language of the environment."""
    language: Language = context.environment.language  # type: ignore[attr-defined]
    return language.fill(message, values)


class Translation(Extension):
    """
    ``{% trans %}`` with ``{% tag %}`` in it, as L{with_marks} writes them, with the ``language`` of the environment.

    It becomes what L{translated} makes of the message, and of what this leaves open, by name.
    """

    tags = {"trans"}

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters[translated.__name__] = translated

    def parse(self, parser: Parser) -> nodes.Node:
        """A text, up to its ``endtrans``."""
        lineno = next(parser.stream).lineno
        parser.stream.expect("block_end")
        message, names, opened = "", dict[str, nodes.Expr](), list[str]()
        for part in _parts(parser):
            if isinstance(part, str):
                message += html.unescape(part)
            elif isinstance(part, nodes.Expr):
                name = _free(_name_of(part), names)
                names[name] = part
                message += f"%({name})s"
            else:
                tag, inner = part
                name = f"/{opened.pop()}" if tag == "/" else _free(tag, names)
                if tag != "/":
                    opened.append(name)
                names[name] = _joined(inner)
                message += f"<{name}>"
        values = nodes.Dict([nodes.Pair(nodes.Const(name), value) for name, value in names.items()])
        text = nodes.Const(" ".join(message.split()))
        made = nodes.Output([nodes.Filter(text, translated.__name__, [values], [], None, None)])
        return made.set_lineno(lineno, override=False)


def _parts(parser: Parser) -> Iterator[str | nodes.Expr | tuple[str, list[nodes.Node]]]:
    """Texts, expressions, and tags with their names."""
    stream = parser.stream
    while True:
        token = next(stream)
        match token.type:
            case "data":
                yield token.value
            case "variable_begin":
                yield parser.parse_tuple(with_condexpr=True)
                stream.expect("variable_end")
            case "block_begin" if stream.skip_if("name:endtrans"):
                return
            case "block_begin" if stream.skip_if("name:tag"):
                name = stream.expect("string").value
                yield name, parser.parse_statements(("name:endtag",), drop_needle=True)
                stream.expect("block_end")
            case _:
                raise TemplateSyntaxError(f"no {token.value!r} is in a text", token.lineno)


def _joined(inner: Sequence[nodes.Node]) -> nodes.Expr:
    """What statements of a tag write, as an expression: its values are escaped, also where all of it is constant."""
    parts: list[nodes.Expr] = [nodes.MarkSafe(nodes.Const(""))]
    for each in inner:
        match each:
            case nodes.Output():
                parts += [
                    nodes.MarkSafe(nodes.Const(part.data)) if isinstance(part, nodes.TemplateData) else part
                    for part in each.nodes
                ]
            case nodes.If():
                parts.append(
                    _chosen([(each.test, each.body), *((one.test, one.body) for one in each.elif_)], each.else_)
                )
            case _:
                raise TemplateSyntaxError("a tag in a text has conditions alone", each.lineno)
    return nodes.MarkSafe(nodes.Concat(parts))


def _chosen(cases: Sequence[tuple[nodes.Node, list[nodes.Node]]], rest: list[nodes.Node]) -> nodes.Expr:
    if not cases:
        return _joined(rest)
    (test, body), *others = cases
    return nodes.CondExpr(cast("nodes.Expr", test), _joined(body), _chosen(others, rest))


def _name_of(value: nodes.Node) -> str:  # noqa: PLR0911 - one return for each kind of expression
    """What a value is called: the last word of an expression."""
    match value:
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            return name.strip("_")
        case nodes.Filter(node=nodes.Node() as inner, name=name):
            return name if name in ("length", "count") else _name_of(inner)
        case nodes.Getitem(arg=nodes.Const(value=str() as name)) if name.isidentifier():
            return name
        case nodes.Getitem(node=inner):
            return _name_of(inner)
        case nodes.Call(node=nodes.Name(name="_"), args=[inner, *_]):  # the translation of a word
            return _name_of(inner)
        case nodes.Call(node=inner):
            return _name_of(inner)
        case nodes.CondExpr(expr1=inner):
            return _name_of(inner)
        case nodes.Concat(nodes=parts):
            return next((name for each in parts if (name := _name_of(each)) != "value"), "value")
        case _:
            return "value"


def _free(name: str, taken: dict[str, Any]) -> str:
    """A name, with a number if it is taken."""
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}{number}"
    return made


class MarkedTemplates(BaseLoader):
    """
    Loads templates by name from their ``sources``.

    Each is compiled once as it stands, for the language of the source, and once with marks, for all others.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._codes: dict[tuple[str, bool], CodeType] = {}

    def load(self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None) -> Template:
        """The template. :raises TemplateNotFound: none has this name"""
        is_source = environment.language.is_source  # type: ignore[attr-defined]
        code = self._codes.get((name, is_source))
        if code is None:
            if name not in self._sources:
                raise TemplateNotFound(name)
            source = self._sources[name]
            code = environment.compile(source if is_source else with_marks(source), name, name)
            self._codes[name, is_source] = code
        return environment.template_class.from_code(environment, code, environment.make_globals(globals))

    def list_templates(self) -> list[str]:
        """The names of all."""
        return sorted(self._sources)
