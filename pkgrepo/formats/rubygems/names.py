"""
Names, versions and platforms of gems, and the names of their files.

A gem is found by its exact name. Two names that differ only in case, ``-`` or ``_`` are one spelling (L{spelling}), and
a repository takes pushes for one of them only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.limits import LONGEST_FILE_NAME, LONGEST_NAME, LONGEST_PLATFORM, LONGEST_VERSION
from pkgrepo.untrusted.text import quoted

RUBY: Final = "ruby"  # the platform of gems without compiled code

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*")
_PLATFORM: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_ENDINGS: Final = (".gem", ".json", ".html", ".gemspec")  # of addresses of the API
_LETTER: Final = re.compile("[A-Za-z]")

_PARTS: Final = re.compile(r"[0-9]+|[A-Za-z]+")
_END: Final = b"\x02"
_MOST: Final = 0xFFFFFFFF
_DIGITS: Final = re.compile(r"[0-9]+")
_MOST_DIGITS: Final = 600  # of a number, which has less than 256 bytes then


def is_name(text: str) -> bool:
    """Whether a text is the name of a gem."""
    return (
        len(text) <= LONGEST_NAME
        and _NAME.fullmatch(text) is not None
        and _LETTER.search(text) is not None
        and not text.endswith(_ENDINGS)
    )


def check_name(text: str) -> str:
    """
    The name of a gem.

    :raises Invalid: the text is no such name; the sentence has the rule
    """
    if not is_name(text):
        raise Invalid(
            f"name {quoted(text)} must have letters, digits, '.', '_' and '-' only, at least one letter and at most "
            f"{LONGEST_NAME} characters, begin and end with a letter or digit, and not end in {' or '.join(_ENDINGS)}",
            "name",
        )
    return text


def check_version(text: str) -> str:
    """
    A version number.

    A dash is legal in Ruby, where it means a prerelease, but no client installs such a gem.

    :raises Invalid: the text is no version
    """
    if len(text) > LONGEST_VERSION or not _VERSION.fullmatch(text):
        raise Invalid(
            f"version {quoted(text)} must be numbers and words joined by dots, beginning with a number, of at most "
            f"{LONGEST_VERSION} characters",
            "version",
        )
    return text


def check_platform(text: str) -> str:
    """A platform. :raises Invalid: the text is no platform"""
    if len(text) > LONGEST_PLATFORM or not _PLATFORM.fullmatch(text):
        raise Invalid(
            f"platform {quoted(text)} must have letters, digits, '.', '_' and '-' only, at most {LONGEST_PLATFORM} of "
            "them",
            "platform",
        )
    return text


def check_full_version(text: str) -> str:
    """A version with its platform, if it has one. :raises Invalid: the text is no version"""
    number, dash, platform = text.partition("-")
    check_version(number)
    if dash:
        check_platform(platform)
    return text


def is_full_version(text: str) -> bool:
    """Whether a text is a version with its platform, if it has one."""
    try:
        check_full_version(text)
    except Invalid:
        return False
    return True


def full_version(number: str, platform: str) -> str:
    """``number``, or ``number-platform``: what the index documents call a version. It is the key of a version."""
    return number if platform == RUBY else f"{number}-{platform}"


def full_name(name: str, version: str) -> str:
    """The name of a gem's file without its ending; ``version`` is a full one. Nothing ever splits it again."""
    return f"{name}-{version}"


def check_file_name(name: str, version: str) -> None:
    """Check that the files of a gem can be stored. :raises Invalid: name and version together are too long"""
    if len(full_name(name, version)) + len(".gemspec.rz") > LONGEST_FILE_NAME:
        raise Invalid(
            f"name, version and platform must have at most {LONGEST_FILE_NAME - len('.gemspec.rz')} characters "
            "together",
            "name",
        )


def spelling(name: str) -> str:
    """What names that are too much alike have in common."""
    return name.lower().replace("_", "-")


def is_prerelease(number: str) -> bool:
    """Whether a version number is that of a prerelease: it has a letter."""
    return _LETTER.search(number) is not None


@lru_cache(maxsize=4096)
def order_key(number: str) -> bytes:
    """
    The sort key of a version number without platform: bytes that compare in the order of ``Gem::Version``.

    A version is split into runs of digits and runs of letters. Zeros at the end are dropped, and so are zeros before
    the first letters. Versions are compared part by part; a missing part counts as zero, and letters come before
    numbers: ``1.a < 1 < 1.0.1``. A key is a sequence of tokens, and no token is a prefix of another one:

    ======================  ===============================================================================
    token                   bytes
    ======================  ===============================================================================
    k zeros, then letters   01, k (4 bytes), the letters, 00
    the end                 02; every missing part is zero
    k zeros, then a number  03, 2**32 - 1 - k (4 bytes), the number's length in bytes (1 byte), the number
    ======================  ===============================================================================

    After more zeros, letters make the version less small, and a number makes it less large.

    :raises Invalid: a number has more than ``_MOST_DIGITS`` digits, or a letter is none of ASCII
    """
    if not number.isascii() or any(len(each) > _MOST_DIGITS for each in _DIGITS.findall(number)):
        raise Invalid(f"{quoted(number)} is no version number that has a place in the order")
    tokens: list[bytes] = []
    zeros = 0
    numeric = True
    for part in _PARTS.findall(number.replace("-", ".pre.")):
        if part[0].isalpha():
            if numeric:
                numeric, zeros = False, 0
            tokens.append(b"\x01" + zeros.to_bytes(4, "big") + part.encode("ascii") + b"\x00")
            zeros = 0
        elif not part.strip("0"):
            zeros += 1
        else:
            tokens.append(b"\x03" + (_MOST - zeros).to_bytes(4, "big") + _number(int(part)))
            zeros = 0
    return b"".join(tokens) + _END


def sort_key(number: str, platform: str) -> bytes:
    """The sort key of a version with its platform: first by number, then by the platform's text."""
    return order_key(number) + platform.encode("ascii")


def bound_key(text: str) -> bytes:
    """The sort key of a version that bounds a range, for all platforms. :raises Invalid: it is no version"""
    return order_key(check_full_version(text).partition("-")[0])


def builds(text: str) -> tuple[bytes, bytes]:
    """The sort keys of a version on all platforms, to the second (exclusive). :raises Invalid: it is no version"""
    key = bound_key(text)
    return key, key + b"\xff"  # above every platform, which is ASCII


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")
