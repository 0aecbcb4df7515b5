"""
Which texts of a template are translated, and what of them a translator sees.

The text of a template is translated as it stands, like that of implicit translation in Chameleon: no author marks it,
so that none is forgotten. What is not text for people says so as HTML does, by ``translate="no"`` (HTML standard,
section 3.2.6.4), or is code. L{with_marks} puts ``trans`` around each text in the source of a template, of which
``translation.py`` makes the text as it is written, or where the language of a page is another one, its translation.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

_STRINGS: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""  # which may have the end of an expression in them
_VALUE: Final = rf"\{{\{{(?:{_STRINGS}|(?!\}}\}}).)*\}}\}}"
_STATEMENT: Final = rf"\{{%(?:{_STRINGS}|(?!%\}}).)*%\}}"
_JINJA: Final = rf"{_VALUE}|{_STATEMENT}|\{{#.*?#\}}"
_TOKEN: Final = re.compile(
    rf"(?P<comment>\{{#.*?#\}}|<!--.*?-->|<!\w[^>]*>)|(?P<statement>{_STATEMENT})|(?P<value>{_VALUE})"
    rf"|(?P<tag></?(?P<name>[a-zA-Z][\w-]*)(?:{_JINJA}|\"(?:{_JINJA}|[^\"])*\"|[^>{{\"]|\{{(?![{{%#]))*>)|(?P<text>(?:(?!\{{[{{%#]|</?[a-zA-Z]|<!).)+)",
    re.S,
)
_ATTRIBUTE: Final = re.compile(
    rf"(?<=[\s}}])(?P<name>title|aria-label|placeholder|alt|label|value|data-[a-z-]+)="
    rf'"(?P<text>(?:{_JINJA}|[^"{{]|\{{(?![{{%#]))*)"',
    re.S,
)
_PIECE: Final = re.compile(rf"({_JINJA})", re.S)
_INLINE: Final = frozenset(
    {"a", "abbr", "b", "code", "em", "i", "kbd", "q", "samp", "small", "span", "strong", "sub", "sup", "time"}
)
_OPAQUE: Final = frozenset({"pre", "script", "style", "svg", "textarea"})
_CODE: Final = frozenset({"code", "kbd", "samp"})
_TRANSLATED: Final = frozenset(
    {"title", "aria-label", "placeholder", "alt", "label", "data-label", "data-confirm", "data-say"}
)
_BUTTON: Final = re.compile(r"type=\"(submit|button|reset)\"")
# Macros and functions that make a picture or a tag beside a text, and are no part of it.
_APART: Final = re.compile(r"\{\{-?\s*(icon|format_icon|kind|visibility|vulnerable|spark|share|bars|token)\(")
_SEPARATOR: Final = re.compile(r"(\s*·\s*)")
_EXAMPLE: Final = re.compile(r"\S*(?:[/*@=]|:\S|\.\w)\S*")  # an address, a file or a pattern
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-.][^\W_]+)*")
_NAMES: Final = frozenset(
    {
        "pkgrepo",
        "SHA-256",
        "SHA-512",
        "API",
        "JSON",
        "URL",
        "HTTP",
        "TLS",
        "OpenAPI",
        "SBOM",
        "Markdown",
        "ms",
        "s",
        "h",
        "x",
        "min",
        "KiB",
        "MiB",
        "GiB",
    }
)


@frozen
class Token:
    """``kind`` is comment, statement, value, tag or text; of a tag also its ``name``."""

    kind: str
    source: str
    name: str = ""

    @property
    def closes(self) -> bool:
        """Whether it is the end of an element."""
        return self.source.startswith("</")

    @property
    def is_inline(self) -> bool:
        """Whether it may be a part of a line of text."""
        return self.kind in ("text", "value") or (self.kind == "tag" and self.name in _INLINE)

    def read_attributes(self) -> Iterator[re.Match[str]]:
        """The attributes that people read, with their ``text``."""
        for each in _ATTRIBUTE.finditer(self.source) if self.kind == "tag" and not self.closes else ():
            if each["name"] in _TRANSLATED or (
                self.name == "input" and each["name"] == "value" and _BUTTON.search(self.source)
            ):
                yield each


def with_marks(source: str) -> str:
    """The source of a template with ``trans`` around each text that is translated, and ``tag`` around tags in it."""
    tokens, made, run = tokens_of(source), [], list[Token]()
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


def tokens_of(source: str) -> list[Token]:
    """The parts of a template's source. :raises ValueError: something is no HTML"""
    found = [
        Token(str(each.lastgroup if each.lastgroup != "name" else "tag"), each[0], (each["name"] or "").lower())
        for each in _TOKEN.finditer(source)
    ]
    if "".join(each.source for each in found) != source:
        raise ValueError("the template is no HTML")
    return found


def _is_kept(token: Token) -> bool:
    """Whether all of an element stays as it is."""
    return token.kind == "tag" and not token.closes and (token.name in _OPAQUE or 'translate="no"' in token.source)


def _end(tokens: Sequence[Token], at: int) -> int:
    """The place after an element."""
    name, depth = tokens[at].name, 0
    for place in range(at, len(tokens)):
        if tokens[place].name == name and not tokens[place].source.endswith("/>"):
            depth += -1 if tokens[place].closes else 1
            if not depth:
                return place + 1
    return at + 1


def _marked(run: Sequence[Token]) -> str:
    """A run of texts, values and elements within a line."""
    pairs = _pairs(run)
    lone = next((at for at, each in enumerate(run) if each.kind == "tag" and at not in pairs), None)
    if lone is not None:  # its other end is beyond a statement
        return _marked(run[:lone]) + _with_attributes(run[lone]) + _marked(run[lone + 1 :])
    inner = _without_what_is_beside(run)
    if len(inner) < len(run):
        at = next((at for at, each in enumerate(run) if inner and each is inner[0]), len(run))
        return _source(run[:at]) + _marked(inner) + _source(run[at + len(inner) :])
    if (parts := _separated(run)) is not None:
        before, sign, after = parts
        return _marked(before) + sign + _marked(after)
    return _trans(run) if is_text(_own_text(run)) else _elements(run, pairs)


def _without_what_is_beside(run: Sequence[Token]) -> Sequence[Token]:
    start, end = 0, len(run)
    while start < end and _is_beside(run[start]):
        start += 1
    while start < end and _is_beside(run[end - 1]):
        end -= 1
    return run[start:end]


def _source(run: Sequence[Token]) -> str:
    return "".join(each.source for each in run)


def _own_text(run: Sequence[Token]) -> str:
    """The text of a run that is in no element."""
    depth, own = 0, []
    for each in run:
        if each.kind == "tag":
            depth += -1 if each.closes else 1
        elif each.kind == "text" and not depth:
            own.append(each.source)
    return "".join(own)


def _elements(run: Sequence[Token], pairs: Mapping[int, int]) -> str:
    """A run without a text of its own: the texts in its elements."""
    made, at = [], 0
    while at < len(run):
        last = pairs.get(at, at)
        made.append(_with_attributes(run[at]))
        if last > at:
            inner = run[at + 1 : last]
            made += [_source(inner) if run[at].name in _CODE else _marked(inner), run[last].source]
        at = last + 1
    return "".join(made)


def _separated(run: Sequence[Token]) -> tuple[Sequence[Token], str, Sequence[Token]] | None:
    """What is before and after a dot that separates two texts, and the dot."""
    depth = 0
    for at, each in enumerate(run):
        if each.kind == "tag":
            depth += -1 if each.closes else 1
        elif each.kind == "text" and not depth and len(parts := _SEPARATOR.split(each.source, 1)) > 1:
            first, sign, rest = parts
            left, right = ([Token("text", text)] if text else [] for text in (first, rest))
            return [*run[:at], *left], sign, [*right, *run[at + 1 :]]
    return None


def _pairs(run: Sequence[Token]) -> dict[int, int]:
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


def _is_beside(token: Token) -> bool:
    """Whether a token at the end of a run is no part of its text."""
    return (token.kind == "text" and not token.source.strip()) or bool(_APART.match(token.source))


def is_text(text: str) -> bool:
    """Whether there are words in a text that are not names alone."""
    words = html.unescape(text).strip()
    return not _EXAMPLE.fullmatch(words) and any(each not in _NAMES for each in _WORD.findall(words))


def _trans(run: Sequence[Token]) -> str:
    sources = [_tagged(each) if each.kind == "tag" else each.source for each in run]
    # spaces at both ends are no part of the text
    whole = "".join(sources)
    start, end = (len(run[0].source) - len(run[0].source.lstrip()) if run[0].kind == "text" else 0), len(whole)
    if run[-1].kind == "text":
        end -= len(run[-1].source) - len(run[-1].source.rstrip())
    return f"{whole[:start]}{{%+ trans +%}}{whole[start:end]}{{%+ endtrans +%}}{whole[end:]}"


def _tagged(token: Token) -> str:
    name = "/" if token.closes else token.name
    return f"{{%+ tag '{name}' +%}}{_with_attributes(token)}{{%+ endtag +%}}"


def _with_attributes(token: Token) -> str:
    """A token; of a tag the attributes that people read are marked."""
    made, at = [], 0
    for each in token.read_attributes():
        made += [token.source[at : each.start("text")], _marked_value(each["text"])]
        at = each.end("text")
    return "".join(made) + token.source[at:]


def _marked_value(text: str) -> str:
    """The value of an attribute: its parts between statements."""
    made, run = [], list[Token]()
    for each in filter(None, _PIECE.split(text)):
        if each.startswith(("{%", "{#")):
            made += [_marked(run), each]
            run = []
        else:
            run.append(Token("value" if each.startswith("{{") else "text", each))
    return "".join(made) + _marked(run)
