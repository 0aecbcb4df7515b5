"""Names of images, tags and digests (OCI distribution 1.1, section "Pulling manifests"; OCI image 1.1, "Digests")."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from attrs import frozen

from pkgrepo.auth.permissions.format_rights import FormatRights, prefixes
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.repositories.version_ranges import Ranges, Test, one_build

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
LONGEST_TAG: Final = 128  # characters
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+")
_WORD = "(?i:alpha|a|beta|b|dev|preview|pre|rc|snapshot)"
_NUMBERED = re.compile(
    rf"[vV]?(?P<numbers>[0-9]+(?:\.[0-9]+)*)(?P<rest>(?:{_WORD}[0-9]*(?:[-_.].*)?|[-_.].*)?)"
)  # a tag such as 7f3e9a1 is no version
_EARLY = re.compile(rf"[-_.]?(?P<word>{_WORD})[-_.]?(?P<number>[0-9]*)(?![a-zA-Z])")
_HEX = re.compile(r"[0-9a-f]+")

TOKEN = "token"  # noqa: S105 - the first segment of a path

MAX_NAME = 255  # characters; clients allow as many for host and name together
HEX_LENGTHS = {"sha256": 64, "sha512": 128}


class NameInvalid(PkgrepoError):  # noqa: N818 - named for what happened
    """The text is not a valid name of an image."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name[:MAX_NAME]!r} is not a name of an image: at most {MAX_NAME} lower-case letters, digits and single "
            "separators"
        )


class TagInvalid(PkgrepoError):  # noqa: N818 - named for what happened
    """The text is not a valid tag."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag[:200]!r} is not a tag: at most 128 letters, digits, dots, dashes and underscores")


class DigestInvalid(PkgrepoError):  # noqa: N818 - named for what happened
    """The text is not a supported digest, or the content has another digest; the message says which."""


@frozen
class Digest:
    """A digest of content; ``str()`` returns ``algorithm:hex``."""

    algorithm: str
    hex: str

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.hex}"

    def matches(self, data: bytes) -> bool:
        """Whether these bytes have this digest."""
        return hashlib.new(self.algorithm, data).hexdigest() == self.hex


def is_image_name(text: str) -> bool:
    """Whether this is a valid name of an image."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def parse_name(text: str) -> str:
    """The name itself. :raises NameInvalid: it is not a valid name of an image"""
    if not is_image_name(text):
        raise NameInvalid(text)
    return text


def check_place(storage: str, repository: str) -> None:
    """
    Check that ``storage/repository/`` can be the prefix of names of images.

    :raises Invalid: clients do not accept it; the error has the JSON pointer of the wrong part
    """
    for pointer, kind, name in (("/storage", "storage", storage), ("/name", "repository", repository)):
        if re.fullmatch(_COMPONENT, name) is None:
            raise Invalid(
                f"{name!r} cannot be part of the names of images, which clients want in lower-case letters and digits "
                f"with single separators between them; choose another {kind}",
                pointer,
            )
    if storage == TOKEN:
        raise Invalid(f"/v2/{TOKEN} is the token service, so no image can be in a storage of this name", "/storage")


def is_tag(text: str) -> bool:
    """Whether this is a valid tag."""
    return _TAG.fullmatch(text) is not None


def parse_tag(text: str) -> str:
    """The tag itself. :raises TagInvalid: it is not a valid tag"""
    if not is_tag(text):
        raise TagInvalid(text)
    return text


def tag_sort(tag: str) -> bytes:
    """
    The sort key of a tag that names a version: 1.4, v1.4.0 and 1.4-alpine are equal, and 1.4-rc1 is before them.

    :raises Invalid: the tag does not begin with numbers
    """
    found = _NUMBERED.fullmatch(tag)
    if found is None:
        raise Invalid(f"{tag[:200]!r} is no tag with a version in front, such as 1.4.2 or v1.4-alpine")
    numbers = [each.lstrip("0") for each in found["numbers"].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    if any(len(each) > LONGEST_TAG for each in numbers):
        raise Invalid(f"{tag[:200]!r} is longer than a tag")
    release = b"".join(bytes([len(each) + 2]) + each.encode() for each in numbers)  # above both ends
    early = _EARLY.match(found["rest"])
    if early is None:
        return release + b"\1"
    number = early["number"].lstrip("0")[:LONGEST_TAG]
    return release + b"\0" + early["word"].lower().encode() + bytes([len(number)]) + number.encode()


def _called(text: str) -> Test | None:
    """The test whether a tag or digest is called exactly so; None for what can be none."""
    if _TAG.fullmatch(text) is None and find_digest(text) is None:
        return None
    return lambda tag: tag == text


RANGES: Final = Ranges(
    sort=tag_sort,
    builds=one_build(tag_sort),
    begins=lambda start: lambda tag: tag == start,
    other=_called,
    written=">=1.5,<2.0, 1.5.*, *-alpine or 1.5",
)


def is_digest_like(text: str) -> bool:
    """Whether a reference is a digest and not a tag: it has a colon."""
    return ":" in text


def parse_digest(text: str) -> Digest:
    """
    The parsed digest.

    :raises DigestInvalid: it is malformed, or its algorithm is neither sha256 nor sha512
    """
    if _DIGEST.fullmatch(text) is None:
        raise DigestInvalid(f"{text[:200]!r} is not a digest")
    algorithm, _, value = text.partition(":")
    length = HEX_LENGTHS.get(algorithm)
    if length is None:
        raise DigestInvalid(f"digests of {algorithm} are not supported; use sha256 or sha512")
    if len(value) != length or _HEX.fullmatch(value) is None:
        raise DigestInvalid(f"a digest of {algorithm} has {length} lower-case hex digits")
    return Digest(algorithm, value)


def find_digest(text: str) -> Digest | None:
    """The parsed digest, or None if it is malformed or not supported, so that no stored content has it."""
    try:
        return parse_digest(text)
    except DigestInvalid:
        return None


def _first(image: str) -> str:
    return image.partition("/")[0]


RIGHTS: Final = FormatRights(
    patterns=lambda image: prefixes(image, "/"),
    claim=_first,
    project_key=_first,  # a project owns the images whose first segment is its key
    forms="acme (with all images below it) or the whole name of an image",
    images=True,
)
