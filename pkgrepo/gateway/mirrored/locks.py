"""What lock files name, and what their readers share."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid

STRENGTH: Final = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")  # the first is compared that both sides have
MOST_DEPTH: Final = 50  # of YAML
MOST_EVENTS: Final = 4_000_000
MOST_COLLECTIONS: Final = 1_000_000  # of JSON; one takes 200 ns
MOST_WANTED: Final = 200_000  # of one file, and of all files together
LONGEST: Final = 500  # characters of what a file names

Digests = frozenset[tuple[str, str]]
"""Pairs of a ``hashlib`` name and a digest in lower-case hex; of the strongest algorithm one is that of the file."""

_HASH: Final = re.compile(r"(md5|sha1|sha224|sha256|sha384|sha512)[:=]([0-9a-fA-F]+)")
_INTEGRITY: Final = re.compile(r"(sha1|sha256|sha384|sha512)-([A-Za-z0-9+/]+={0,2})")
_SECRETS: Final = (  # in addresses: names and passwords, tokens in paths of channels, signatures
    (re.compile(r"://[^/\s@]*@"), "://"),
    (re.compile(r"/t/[^/\s]+/"), "/t/.../"),
    (re.compile(r"(://[^\s?#]*)\?[^\s#]*"), r"\1"),
)
_NULLS: Final = ("", "~", "null")
_COLLECTIONS: Final[Mapping[str, Callable[[], Any]]] = {"MappingStartEvent": dict, "SequenceStartEvent": list}


@frozen(kw_only=True)
class Wanted:
    """
    Something that a lock file names.

    ``format`` is that of the repositories which have it. ``name`` is that of the package; ``file`` is the name of a
    file of the ``version``, or its path in the repository; without it all files of the version with one of the
    ``digests`` are wanted, or all. Of an image ``version`` is a tag or a digest, and ``platforms`` are those of which
    it is wanted; none: all. What is ``optional`` need not be there.
    """

    format: str
    name: str
    version: str = ""
    file: str = ""
    digests: Digests = frozenset()
    platforms: tuple[str, ...] = ()
    optional: bool = False

    @property
    def label(self) -> str:
        """What reports call it."""
        return self.file.rpartition("/")[2] or self.version


@define
class Lock:
    """What was read: what is wanted, and the names of what no repository has, with the reason."""

    wanted: list[Wanted] = Factory(list)
    left_out: list[tuple[str, str]] = Factory(list)

    def want(self, wanted: Wanted) -> None:
        """Add something. :raises Invalid: it is too much"""
        if len(self.wanted) >= MOST_WANTED:
            raise Invalid(f"it names more than {MOST_WANTED} files")
        self.wanted.append(wanted)

    def leave_out(self, item: object, reason: str) -> None:
        """Note that something is not fetched, without the secrets in its address. :raises Invalid: it is too much"""
        if len(self.left_out) >= MOST_WANTED:
            raise Invalid(f"it names more than {MOST_WANTED} things that no registry has")
        text = str(item)
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
        self.left_out.append((text[:LONGEST], reason))


def parse_hashes(texts: Iterable[object]) -> Digests:
    """The digests in texts such as ``sha256:HEX``; those of other forms are left out."""
    found = (_HASH.fullmatch(each.strip()) for each in texts if isinstance(each, str))
    return frozenset((each[1], each[2].lower()) for each in found if each is not None)


def parse_integrity(text: object) -> Digests:
    """The digests in a text of subresource integrity (W3C), as npm writes it."""
    pairs = []
    for each in _INTEGRITY.finditer(text if isinstance(text, str) else ""):
        try:
            pairs.append((each[1], b64decode(each[2]).hex()))
        except Base64Error:
            continue
    return frozenset(pairs)


def differs(digests: Digests, known: Mapping[str, str]) -> bool | None:
    """Whether a file with ``known`` digests is another one than is wanted; None if they have no algorithm together."""
    for algorithm in STRENGTH:
        wanted = {text for name, text in digests if name == algorithm}
        if wanted and algorithm in known:
            return known[algorithm] not in wanted
    return None if digests else False


def path_of(url: str) -> str:
    """The path in a URL, without escapes; empty if the text is no URL."""
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


def text_of(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def table_of(value: object) -> dict[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def tables_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def read_json(text: str) -> dict[str, Any]:
    """A JSON object. :raises Invalid: it is no JSON object, or larger than any lock file: threads wait for it"""
    if text.count("{") + text.count("[") > MOST_COLLECTIONS:
        raise Invalid("it has too many values")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Invalid("it is no JSON object") from None


def read_yaml(text: str) -> Any:
    """
    A YAML document; scalars are texts, and null is None. It is read event by event, so that other threads can run.

    PyYAML, which takes 3 MB and 20 ms, is imported for the first one.

    :raises Invalid: it is malformed, nested too deeply, or has more values than any lock file
    """
    import yaml  # noqa: PLC0415 - see above

    try:
        return _read_events(text)
    except (yaml.YAMLError, ValueError) as error:
        raise Invalid(f"it is no YAML document: {' '.join(str(error).split())[:LONGEST]}") from None


def _read_events(text: str) -> Any:
    import yaml  # noqa: PLC0415 - as above

    root: list[Any] = []
    stack: list[tuple[Any, list[Any]]] = [(root, [])]  # a collection, and the key in a mapping whose value comes next
    for number, event in enumerate(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
        if number > MOST_EVENTS or len(stack) > MOST_DEPTH:
            raise Invalid("it has too many values, or is nested too deeply")
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            stack.pop()
            continue
        if isinstance(event, yaml.AliasEvent):
            raise Invalid("it has an alias, which no lock file has")
        if not isinstance(event, yaml.NodeEvent):
            continue
        value = _value_of(event)
        collection, key = stack[-1]
        if isinstance(collection, list):
            collection.append(value)
        elif not key:
            key.append(value if isinstance(value, str) else None)
        else:
            collection[key.pop()] = value
        if isinstance(value, (dict, list)):
            stack.append((value, []))
    return root[0] if root else None


def _value_of(event: Any) -> Any:
    """The value that an event of a node begins: a collection or a scalar, since there are no aliases."""
    collection = _COLLECTIONS.get(type(event).__name__)
    if collection is not None:
        return collection()
    return None if event.implicit[0] and event.value in _NULLS else event.value
