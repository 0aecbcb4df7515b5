"""
Reads the YAML documents of gems with libyaml, without making objects of the classes that they name.

The parser's events become dicts, lists, texts and None. What Ruby writes as an object of one of L{CLASSES} becomes a
dict like any other mapping. Only null is recognised among plain scalars: ``1.10`` must stay a text, and ``y`` is no
boolean. Every other tag is refused. Aliases are references to the same value, so that they take no memory; readers of
the value look at a bounded number of places in it.

PyYAML is imported by the first gem.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterator
from typing import Any, Final

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.limits import LONGEST_BINARY, MOST_DEPTH, MOST_DIRECTIVES, MOST_EVENTS
from pkgrepo.untrusted.text import quoted
from pkgrepo.untrusted.yaml_text import load_yaml

SPECIFICATION: Final = "Gem::Specification"
CLASSES: Final = frozenset(
    {
        SPECIFICATION,
        "Gem::Version",
        "Gem::Requirement",
        "Gem::Version::Requirement",
        "Gem::Dependency",
        "Gem::Platform",
    }
)
EQUALS: Final = "YAML::Syck::DefaultKey"  # written for the operator "=" by Ruby 1.9

_OBJECT: Final = "!ruby/object:"
_TEXT_TAGS: Final = frozenset(
    {"!", "!str", "tag:yaml.org,2002:str", "!ruby/symbol", "!ruby/sym", "tag:ruby.yaml.org,2002:sym"}
)
_BINARY_TAGS: Final = frozenset({"!binary", "tag:yaml.org,2002:binary"})
_COLLECTION_TAGS: Final = frozenset({"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
# A percent sign where libyaml may take it for a directive: after a line end of YAML 1.1, or a byte order mark.
_DIRECTIVES: Final = (b"\n%", b"\r%", b"\xc2\x85%", b"\xe2\x80\xa8%", b"\xe2\x80\xa9%", b"\xef\xbb\xbf%")
_SEARCHED: Final = 64 * 1024  # bytes at a time, 50 us
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})

_NO_KEY: Final = object()


def read_document(source: Source, data: bytes, what: str, root: str | None = None) -> dict[str, Any]:
    """
    The mapping that a YAML document is; ``what`` is the document's name in messages.

    With ``root`` the mapping must be an object of this class. Keys that are no texts are dropped.

    :raises Invalid: it is malformed, exceeds a limit (see ``limits``), or has a tag that no gem needs
    """
    # libyaml compares each directive with all others; no tool writes any, and every tool writes UTF-8.
    if data.startswith(_UTF16) or _count_directives(data) > MOST_DIRECTIVES:
        raise source.refuse(f"has a {what} that is not plain UTF-8 YAML without directives")
    yaml = load_yaml()
    try:
        value, tag = _Builder(source, what).build(yaml.parse(_PacedInput(data), Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        # libyaml's own messages repeat parts of the document.
        raise source.refuse(f"has a {what} that is not valid YAML") from None
    if not isinstance(value, dict) or (root is not None and tag != _OBJECT + root):
        raise source.refuse(f"has a {what} that is no {root or 'mapping'}")
    return value


class _PacedInput:
    """A document for libyaml, which reads it in pieces of 16 KiB: between these the GIL can be released."""

    def __init__(self, data: bytes) -> None:
        self._read = io.BytesIO(data).read
        self._gil = GilReleaser()

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most ``size``."""
        self._gil.release_if_due()
        return self._read(size)


def _count_directives(data: bytes) -> int:
    found, gil = int(data.startswith(b"%")), GilReleaser()
    for start in range(0, len(data), _SEARCHED):
        for each in _DIRECTIVES:
            found += data.count(each, start, start + _SEARCHED + len(each) - 1)
        gil.release_if_due()
    return found


class _Builder:
    """Builds values from events; ``_open`` are the collections that have not ended, with the key that waits."""

    def __init__(self, source: Source, what: str) -> None:
        self._source = source
        self._what = what
        self._anchors: dict[str, Any] = {}
        self._open: list[list[Any]] = []  # [collection, waiting key or _NO_KEY]
        self._root: Any = None
        self._root_tag: str | None = None

    def build(self, events: Iterator[Any]) -> tuple[Any, str | None]:
        """The value of the first document, and the tag of its root."""
        yaml = load_yaml()
        documents = 0
        gil = GilReleaser()
        for count, event in enumerate(events):
            if count >= MOST_EVENTS:
                raise self._refuse(f"has more than {MOST_EVENTS} elements")
            gil.release_if_due()
            if isinstance(event, yaml.ScalarEvent):
                self._put(self._anchored(event, self._scalar(event)), event.tag)
            elif isinstance(event, yaml.MappingStartEvent):
                self._begin(event, {})
            elif isinstance(event, yaml.SequenceStartEvent):
                self._begin(event, [])
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
            elif isinstance(event, yaml.AliasEvent):
                self._put(self._aliased(event), None)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refuse("has more than one document")
        return self._root, self._root_tag

    def _begin(self, event: Any, collection: Any) -> None:
        if len(self._open) >= MOST_DEPTH:
            raise self._refuse(f"has more than {MOST_DEPTH} collections in each other")
        self._check_tag(event.tag)
        if event.tag == _OBJECT + EQUALS:
            collection = {EQUALS: "="}
        self._put(self._anchored(event, collection), event.tag)
        self._open.append([collection, _NO_KEY])

    def _put(self, value: Any, tag: str | None) -> None:
        if not self._open:
            self._root, self._root_tag = value, tag
            return
        top = self._open[-1]
        collection, key = top
        if isinstance(collection, list):
            collection.append(value)
        elif key is _NO_KEY:
            top[1] = value
        else:
            if isinstance(key, str):
                if key in collection:
                    # Readers differ in which of two values they take.
                    raise self._refuse(f"has the key {quoted(key)} twice")
                collection[key] = value
            top[1] = _NO_KEY

    def _anchored(self, event: Any, value: Any) -> Any:
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _aliased(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise self._refuse("has an alias of nothing")
        return self._anchors[event.anchor]

    def _scalar(self, event: Any) -> str | None:
        tag, text = event.tag, str(event.value)
        if tag is None:
            return None if not event.style and text in _NULLS else text
        if tag in _TEXT_TAGS:
            return text
        if tag in _BINARY_TAGS:
            return self._binary(text)
        if tag == _OBJECT + EQUALS:
            return "="
        self._check_tag(tag)
        return text

    def _binary(self, text: str) -> str:
        if len(text) > LONGEST_BINARY:
            raise self._refuse(f"has a binary value of more than {LONGEST_BINARY} characters")
        try:
            raw = base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error:
            raise self._refuse("has a binary value that is not base64") from None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def _check_tag(self, tag: str | None) -> None:
        if tag is None or tag in _COLLECTION_TAGS:
            return
        if tag.startswith(_OBJECT) and (tag[len(_OBJECT) :] in CLASSES or tag == _OBJECT + EQUALS):
            return
        raise self._refuse(f"has the tag {quoted(tag)}, which no gem needs")

    def _refuse(self, why: str) -> Invalid:
        return self._source.refuse(f"has a {self._what} that {why}")
