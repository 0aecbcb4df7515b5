"""
Which texts of a template are translated, and what of them a translator sees.

The text of a template is translated as it stands, like that of implicit translation in Chameleon: no author marks it,
so that none is forgotten. What is not text for people says so as HTML does, by ``translate="no"`` (HTML standard,
section 3.2.6.4), or is code. L{with_marks} puts ``trans`` around each text in the source of a template; the extension
L{Translation} makes of it the text as it is written, or where the language of a page is another one, its translation.

=======================================  ====================================================
in the template                          what a translator sees
=======================================  ====================================================
``Read <a href="/x">the page</a>.``      ``Read <a>the page</a>.``
``Tokens of <b>{{ user.name }}</b>``     ``Tokens of <b>%(name)s</b>``
``title="Copy {{ path }}"``              ``Copy %(path)s``
=======================================  ====================================================

A text ends where a statement or an element that is no part of a line begins. Tags and values belong to the template: of
a catalog come words alone, which are escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from types import CodeType
from typing import Any, ClassVar, Final

from attrs import frozen
from jinja2 import BaseLoader, Environment, Template, nodes
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser

_JINJA: Final = r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}"
_TOKEN: Final = re.compile(
    rf"(?P<comment>\{{#.*?#\}}|<!--.*?-->|<!\w[^>]*>)|(?P<statement>\{{%.*?%\}})|(?P<value>\{{\{{.*?\}}\}})"
    rf"|(?P<tag></?(?P<name>[a-zA-Z][\w-]*)(?:{_JINJA}|\"(?:{_JINJA}|[^\"])*\"|[^>{{\"]|\{{(?![{{%#]))*>)|(?P<text>(?:(?!\{{[{{%#]|</?[a-zA-Z]|<!).)+)",
    re.S,
)
_ATTRIBUTE: Final = re.compile(
    rf"(?<=[\s}}])(?P<name>title|aria-label|placeholder|alt|label|value|data-[a-z-]+)="
    rf'"(?P<text>(?:{_JINJA}|[^"{{]|\{{(?![{{%#]))*)"',
    re.S,
)
_PIECE: Final = re.compile(rf"({_JINJA})", re.S)
_INLINE: Final = frozenset("a abbr b code em i kbd q samp small span strong sub sup time".split())
_OPAQUE: Final = frozenset("pre script style svg textarea".split())
_CODE: Final = frozenset("code kbd samp".split())
_TRANSLATED: Final = frozenset("title aria-label placeholder alt label data-label data-confirm data-say".split())
_BUTTON: Final = re.compile(r"type=\"(submit|button|reset)\"")
# Macros and functions that make a picture or a tag beside a text, and are no part of it.
_APART: Final = re.compile(r"\{\{-?\s*(icon|format_icon|kind|visibility|vulnerable|spark|share|bars|token)\(")
_SEPARATOR: Final = re.compile(r"(\s*·\s*)")
_EXAMPLE: Final = re.compile(r"\S*(?:[/*:@=]|\.\w)\S*")  # an address, a file or a pattern
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-.][^\W_]+)*")
_NAMES: Final = frozenset(
    "pkgrepo npm SHA-256 SHA-512 API JSON URL HTTP TLS OpenAPI SBOM ms s h x min KiB MiB GiB".split()
)


@frozen
class _Token:
    """``kind`` is comment, statement, value, tag or text; of a tag also its ``name``."""

    kind: str
    source: str
    name: str = ""

    @property
    def closes(self) -> bool:
        return self.source.startswith("</")

    @property
    def is_inline(self) -> bool:
        return self.kind in ("text", "value") or (self.kind == "tag" and self.name in _INLINE)


def with_marks(source: str) -> str:
    """The source of a template with ``trans`` around each text that is translated, and ``tag`` around tags in it."""
    tokens, made, run = _tokens(source), [], list[_Token]()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.is_inline and not _is_kept(token):
            run.append(token)
            at += 1
            continue
        made.append(_marked(run))
        run = []
        end = _end(tokens, at) if _is_kept(token) else at + 1
        made.append(_with_attributes(token) + "".join(each.source for each in tokens[at + 1 : end]))
        at = end
    return "".join(made) + _marked(run)


def _tokens(source: str) -> list[_Token]:
    found = [_Token(str(each.lastgroup if each.lastgroup != "name" else "tag"), each[0], (each["name"] or "").lower()) for each in _TOKEN.finditer(source)]
    if "".join(each.source for each in found) != source:
        raise ValueError("the template is no HTML")
    return found


def _is_kept(token: _Token) -> bool:
    """Whether all of an element stays as it is."""
    return token.kind == "tag" and not token.closes and (token.name in _OPAQUE or 'translate="no"' in token.source)


def _end(tokens: Sequence[_Token], at: int) -> int:
    """The place after an element."""
    name, depth = tokens[at].name, 0
    for place in range(at, len(tokens)):
        if tokens[place].name == name and not tokens[place].source.endswith("/>"):
            depth += -1 if tokens[place].closes else 1
            if not depth:
                return place + 1
    return at + 1


def _marked(run: Sequence[_Token]) -> str:
    """A run of texts, values and elements within a line."""
    pairs = _pairs(run)
    lone = [at for at, each in enumerate(run) if each.kind == "tag" and at not in pairs]
    if lone:  # its other end is beyond a statement
        return _marked(run[: lone[0]]) + _with_attributes(run[lone[0]]) + _marked(run[lone[0] + 1 :])
    start, end = 0, len(run)
    while start < end and _is_beside(run[start]):
        start += 1
    while start < end and _is_beside(run[end - 1]):
        end -= 1
    if start or end < len(run):
        before, after = ("".join(each.source for each in part) for part in (run[:start], run[end:]))
        return before + (_marked(run[start:end]) if start < end else "") + after
    if not run:
        return ""
    if (parts := _separated(run)) is not None:
        before, sign, after = parts
        return _marked(before) + sign + _marked(after)
    depth, own = 0, ""
    for each in run:
        if each.kind == "tag":
            depth += -1 if each.closes else 1
        elif each.kind == "text" and not depth:
            own += f" {each.source}"
    if is_text(own):
        return _trans(run)
    made, at = [], 0
    while at < len(run):
        last = pairs.get(at, at)
        if last == at:
            made.append(run[at].source)
        else:
            inner = run[at + 1 : last]
            plain = run[at].name in _CODE
            made.append(_with_attributes(run[at]))
            made.append("".join(each.source for each in inner) if plain else _marked(inner))
            made.append(run[last].source)
        at = last + 1
    return "".join(made)


def _separated(run: Sequence[_Token]) -> tuple[Sequence[_Token], str, Sequence[_Token]] | None:
    """What is before and after a dot that separates two texts, and the dot."""
    depth = 0
    for at, each in enumerate(run):
        if each.kind == "tag":
            depth += -1 if each.closes else 1
        elif each.kind == "text" and not depth and len(parts := _SEPARATOR.split(each.source, 1)) > 1:
            first, sign, rest = parts
            left, right = ([_Token("text", text)] if text else [] for text in (first, rest))
            return [*run[:at], *left], sign, [*right, *run[at + 1 :]]
    return None


def _pairs(run: Sequence[_Token]) -> dict[int, int]:
    """The ends of elements by their starts, and the starts by the ends."""
    found, opened = dict[int, int](), list[int]()
    for at, each in enumerate(run):
        if each.kind == "tag" and not each.closes:
            opened.append(at)
        elif each.kind == "tag":
            while opened and run[opened[-1]].name != each.name:
                opened.pop()
            if opened:
                start = opened.pop()
                found |= {start: at, at: start}
    return found


def _is_beside(token: _Token) -> bool:
    """Whether a token at the end of a run is no part of its text."""
    return (token.kind == "text" and not token.source.strip()) or bool(_APART.match(token.source))


def is_text(text: str) -> bool:
    """Whether there are words in a text that are not names alone."""
    words = html.unescape(text).strip()
    return not _EXAMPLE.fullmatch(words) and any(each not in _NAMES for each in _WORD.findall(words))


def _trans(run: Sequence[_Token]) -> str:
    sources = [_tagged(each) if each.kind == "tag" else each.source for each in run]
    # spaces at both ends are no part of the text
    whole = "".join(sources)
    start, end = (len(run[0].source) - len(run[0].source.lstrip()) if run[0].kind == "text" else 0), len(whole)
    if run[-1].kind == "text":
        end -= len(run[-1].source) - len(run[-1].source.rstrip())
    return f"{whole[:start]}{{%+ trans +%}}{whole[start:end]}{{%+ endtrans +%}}{whole[end:]}"


def _tagged(token: _Token) -> str:
    name = "/" if token.closes else token.name
    return f"{{%+ tag '{name}' +%}}{_with_attributes(token)}{{%+ endtag +%}}"


def _with_attributes(token: _Token) -> str:
    """A tag, whose attributes that people read are marked; other tokens as they are."""
    if token.kind != "tag" or token.closes:
        return token.source

    def mark(found: re.Match[str]) -> str:
        name, text = found["name"], found["text"]
        if name not in _TRANSLATED and not (name == "value" and _BUTTON.search(token.source)):
            return found[0]
        return f'{name}="{_marked_value(text)}"'

    return _ATTRIBUTE.sub(mark, token.source)


def _marked_value(text: str) -> str:
    """The value of an attribute: its parts between statements."""
    made, run = [], list[_Token]()
    for each in filter(None, _PIECE.split(text)):
        if each.startswith(("{%", "{#")):
            made += [_marked(run), each]
            run = []
        else:
            run.append(_Token("value" if each.startswith("{{") else "text", each))
    return "".join(made) + _marked(run)


class Translation(Extension):
    """
    ``{% trans %}`` with ``{% tag %}`` in it, as L{with_marks} writes them.

    The environment has the ``language``: a text is written as it stands where that is ``source``, and else is what
    ``language.fill`` makes of the message and of what it leaves open, by name.
    """

    tags: ClassVar[set[str]] = {"trans"}

    def parse(self, parser: Parser) -> nodes.Node:
        """A text, up to its ``endtrans``."""
        lineno = next(parser.stream).lineno
        parser.stream.expect("block_end")
        message, names, opened = "", dict[str, nodes.Expr](), list[str]()
        written: list[nodes.Node] = []
        for part in _parts(parser):
            if isinstance(part, str):
                message += html.unescape(part)
                written.append(nodes.TemplateData(part, lineno=lineno))
            elif isinstance(part, nodes.Expr):
                name = _free(_name_of(part), names)
                names[name] = part
                message += f"%({name})s"
                written.append(part)
            else:
                tag, inner = part
                name = f"/{opened.pop()}" if tag == "/" else _free(tag, names)
                if tag != "/":
                    opened.append(name)
                names[name] = _joined(inner)
                message += f"<{name}>"
                written += inner
        message = " ".join(message.split())
        pairs = [nodes.Pair(nodes.Const(name), value) for name, value in names.items()]
        language = nodes.EnvironmentAttribute("language")
        filled = nodes.Call(
            nodes.Getattr(language, "fill", "load"), [nodes.Const(message), nodes.Dict(pairs)], [], None, None
        )
        made = nodes.If(
            nodes.Getattr(language, "is_source", "load"),
            list(_as_output(written)),
            [],
            [nodes.Output([filled])],
        )
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


def _as_output(written: Sequence[nodes.Node]) -> Iterator[nodes.Node]:
    """Statements that write each part, as few as there can be."""
    pending = list[nodes.Expr]()
    for each in written:
        if isinstance(each, nodes.Output):
            pending += each.nodes
        elif isinstance(each, nodes.Expr):
            pending.append(each)
        else:
            if pending:
                yield nodes.Output(pending)
            pending = []
            yield each
    if pending:
        yield nodes.Output(pending)


def _joined(inner: Sequence[nodes.Node]) -> nodes.Expr:
    """What statements of a tag write, as an expression."""
    parts: list[nodes.Expr] = [nodes.MarkSafe(nodes.Const(""))]
    for each in inner:
        match each:
            case nodes.Output():
                parts += [nodes.MarkSafe(nodes.Const(part.data)) if isinstance(part, nodes.TemplateData) else part for part in each.nodes]
            case nodes.If():
                parts.append(_chosen([(each.test, each.body), *((one.test, one.body) for one in each.elif_)], each.else_))
            case _:
                raise TemplateSyntaxError("a tag in a text has conditions alone", each.lineno)
    return nodes.Concat(parts)


def _chosen(cases: Sequence[tuple[nodes.Expr, list[nodes.Node]]], rest: list[nodes.Node]) -> nodes.Expr:
    if not cases:
        return _joined(rest)
    (test, body), *others = cases
    return nodes.CondExpr(test, _joined(body), _chosen(others, rest))


def _name_of(value: nodes.Node) -> str:
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
    """Loads templates by name from their ``sources``; each is compiled once for the environments of all languages."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._codes: dict[str, CodeType] = {}

    def load(self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None) -> Template:
        """The template. :raises TemplateNotFound: none has this name"""
        if name not in self._codes:
            if name not in self._sources:
                raise TemplateNotFound(name)
            self._codes[name] = environment.compile(with_marks(self._sources[name]), name, name)
        return environment.template_class.from_code(environment, self._codes[name], environment.make_globals(globals))

    def list_templates(self) -> list[str]:
        """The names of all."""
        return sorted(self._sources)
