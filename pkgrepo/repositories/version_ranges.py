"""Tests of the text of a version, which rules of retention and of policy are written with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from typing import Final

from pkgrepo.errors import Invalid

Sort = Callable[[str], bytes]  # the sort key of a version; raises ``Invalid``

COMPARISONS: Final[Mapping[str, Callable[[bytes, bytes], bool]]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
}
_COMPARED: Final = re.compile(r"(>=|<=|==|!=|>|<|=)\s*([^\s,<>=!]+)[\s,]*")


def is_range(text: str) -> bool:
    """Whether a text is a range, such as ``>=1.0 <2.0``, and no pattern of versions."""
    return text[:1] in ("<", ">", "=", "!")


def range_test(text: str, sort: Sort | None, pointer: str, *, unknown: bool = False) -> Callable[[str], bool]:
    """
    A test whether a version is within a range. The order is that of ``sort``, which is None for images.

    ``unknown`` is the result for what is no version.

    :raises Invalid: the text is no range, or a bound is no version; with the JSON ``pointer``
    """
    if sort is None:
        raise Invalid("images have no ranges of versions: write a pattern or a regular expression", pointer)
    bounds = _COMPARED.findall(text)
    if not bounds or _COMPARED.sub("", text):
        raise Invalid(f"{text!r} is no range such as >=1.0 <2.0", pointer)
    try:
        tests = [(COMPARISONS[sign], sort(version)) for sign, version in bounds]
    except Invalid as error:
        raise Invalid(error.message, pointer) from None

    def is_within(version: str) -> bool:
        try:
            place = sort(version)
        except Invalid:
            return unknown
        return all(compare(place, bound) for compare, bound in tests)

    return is_within


def pattern_test(text: str) -> Callable[[str], object]:
    """A test whether a version matches a pattern, such as ``1.*``."""
    return re.compile(translate(text)).match
