"""What lock files name, and what their readers share."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid

STRENGTH: Final = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")  # the first is compared that both sides have
MOST_COLLECTIONS: Final = 1_000_000  # of JSON; one takes 200 ns
MOST_WANTED: Final = 200_000  # of one file, and of all files together
LONGEST: Final = 500  # characters of what a file names

Digests = frozenset[tuple[str, str]]
"""Pairs of a ``hashlib`` name and a digest in lower-case hex; of the strongest algorithm one is that of the file."""

_HASH: Final = re.compile(r"(md5|sha1|sha224|sha256|sha384|sha512)[:=]([0-9a-fA-F]+)")
_BY_LENGTH: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}  # of a digest in hex
_SUM: Final = re.compile(r"([0-9a-fA-F]{32,128})[ \t]+\*?(?:\./)?(.+)")
_INTEGRITY: Final = re.compile(r"(sha1|sha256|sha384|sha512)-([A-Za-z0-9+/]+={0,2})")
_SECRETS: Final = (  # in addresses: names and passwords, tokens in paths of channels, signatures
    (re.compile(r"://[^/\s@]*@"), "://"),
    (re.compile(r"/t/[^/\s]+/"), "/t/.../"),
    (re.compile(r"(://[^\s?#]*)\?[^\s#]*"), r"\1"),
)


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


def parse_sum(line: str) -> tuple[Digests, str] | None:
    """The digest and the path in a line as ``sha256sum`` prints it; None if it is another one."""
    found = _SUM.fullmatch(line)
    if found is None or len(found[1]) not in _BY_LENGTH:
        return None
    return frozenset({(_BY_LENGTH[len(found[1])], found[1].lower())}), found[2]


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
