"""
Texts that say which versions are meant, in rules of retention and of policy: the grammar that all formats share.

====================================  =================================================================================
text                                  is about
====================================  =================================================================================
``>=1.0,<2.0``, ``==1.5``, ``!=1.5``  versions in the order of the format; a bound stands for all builds of it
``1.5``                               this version, in each spelling, and all builds of it
``1.*``, ``*-alpha``                  versions whose text is like the pattern; ``1.5.*`` also all that begin with 1.5
``==1.5.*``, ``!=1.5.*``              the same, and all others
other operators                       what the clients of the format take them for, such as ``~=`` and ``^``
other forms                           the same: brackets, hyphens
``A || B``                            what any of several texts is about
====================================  =================================================================================

What a format has beside that is its L{Ranges}. Nothing is guessed: a text that cannot be read is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from typing import Any, Final

from attrs import field, frozen

from pkgrepo.errors import Invalid

Sort = Callable[[str], bytes]  # the sort key of a version; raises ``Invalid``
Builds = Callable[[str], tuple[bytes, bytes]]  # the sort keys of all builds of a version: from, to (exclusive)
Test = Callable[[str], bool]  # of the text of a version; one of an order raises ``Invalid`` for what is none

ALTERNATIVE: Final = "||"
WILD: Final = frozenset("*?[")  # in a pattern
_COMPARISONS: Final[Mapping[str, Callable[[bytes, bytes, bytes], bool]]] = {  # of a place, with a bound: from, to
    ">=": lambda place, low, _high: place >= low,
    "<=": lambda place, _low, high: place < high,
    "==": lambda place, low, high: low <= place < high,
    "=": lambda place, low, high: low <= place < high,
    "!=": lambda place, low, high: not low <= place < high,
    ">": lambda place, _low, high: place >= high,
    "<": lambda place, low, _high: place < low,
}
_EQUAL: Final = ("==", "=", "!=")
_SIGN: Final = r"===|~=|==|!=|>=|<=|~>|[<>=~^]"
_CLAUSE: Final = re.compile(rf"({_SIGN})\s*((?:[^\s,<>=!~^]|!(?!=))+)[\s,]*")  # 1!2.0 has an epoch
_PLAIN: Final = re.compile(r"[^\s,<>=!~^|()][^\s,<>=~^|()]*")
_SIGNED: Final = re.compile(_SIGN)


def is_plain(text: str) -> bool:
    """Whether a text is a single version or pattern, which every format reads alike."""
    return text[:1] != "[" and _PLAIN.fullmatch(text) is not None  # a bracket begins a range of Maven


def one_build(sort: Sort) -> Builds:
    """The ``builds`` of a format in which all builds of a version have one sort key."""

    def builds(text: str) -> tuple[bytes, bytes]:
        key = sort(text)
        return key, key + b"\0"  # no key is the beginning of another one

    return builds


@frozen(kw_only=True, eq=False)
class Ranges:
    """
    How people write which versions of a format they mean.

    ``sort`` is the sort key of a version, and raises ``Invalid`` for what has no place in the order. ``builds`` are the
    sort keys of all builds of a version that bounds a range, and raise ``Invalid``, too. ``operators`` are the further
    ones of the format: each makes a test of the text behind it. ``begins`` makes a test whether a version begins with
    another one. ``other`` makes a test of a text of another form, and returns None if it has none. All of them raise
    ``Invalid`` for a text that cannot be read.

    ``written`` are examples, for people.
    """

    sort: Sort
    builds: Builds
    operators: Mapping[str, Callable[[str], Test]] = field(factory=dict)
    begins: Callable[[str], Test] | None = None
    other: Callable[[str], Test | None] = lambda _text: None
    written: str = ""

    def test(self, text: str, pointer: str = "", *, unknown: bool = False) -> Test:
        """
        A test whether a version is meant by a text. ``unknown`` is the result for what has no place in the order.

        :raises Invalid: the text cannot be read; with the JSON ``pointer``
        """
        tests = [self._test(each.strip(), text, pointer) for each in text.split(ALTERNATIVE)]

        def is_meant(version: str) -> bool:
            for each in tests:
                try:
                    found = each(version)
                except Invalid:
                    found = unknown
                if found:
                    return True
            return False

        return is_meant

    def _test(self, text: str, whole: str, pointer: str) -> Test:
        if not text:
            raise Invalid("there is nothing on one side of ||" if ALTERNATIVE in whole else "it is empty", pointer)
        try:
            found = self.other(text)
            if found is not None:
                return found
            return self._clauses(text) if _SIGNED.match(text) or text[0] == "!" else self._one(text)
        except Invalid as error:
            written = f"; write it like {self.written}" if self.written else ""
            raise Invalid(f"{text[:200]!r} cannot be read as versions: {error.message}{written}", pointer) from None

    def _clauses(self, text: str) -> Test:
        clauses = _CLAUSE.findall(text)
        if not clauses or _CLAUSE.sub("", text):
            raise Invalid("it is no range such as >=1.0 <2.0")
        tests = [self._clause(*each) for each in clauses]
        return tests[0] if len(tests) == 1 else lambda version: all(each(version) for each in tests)

    def _clause(self, sign: str, bound: str) -> Test:
        if sign in _EQUAL and bound.endswith(".*"):
            is_like = self._pattern(bound)
            return is_like if sign != "!=" else lambda version: not is_like(version)
        if sign in self.operators:
            return self.operators[sign](bound)
        if sign not in _COMPARISONS:
            raise Invalid(f"{sign} is no operator of this format")
        if WILD & {*bound}:
            raise Invalid(f"a pattern stands behind none of the operators but == and !=, and ends with .*: {bound}")
        compare, (low, high) = _COMPARISONS[sign], self.builds(bound)
        return lambda version: compare(self.sort(version), low, high)

    def _one(self, text: str) -> Test:
        """A test of a single version or pattern, which is false for what has no place in the order."""
        if _PLAIN.fullmatch(text) is None:
            raise Invalid("it is neither a version nor a pattern")
        return self._pattern(text) if WILD & {*text} else self._equals(text)

    def _pattern(self, text: str) -> Test:
        is_like = re.compile(translate(text)).match
        start = text.removesuffix(".*")
        if start == text or WILD & {*start}:
            return lambda version: is_like(version) is not None
        try:
            begins = (self.begins or self._equals)(start)
        except Invalid:  # it is the beginning of a text that is no version
            return lambda version: is_like(version) is not None
        return lambda version: is_like(version) is not None or _or_false(begins, version)

    def _equals(self, text: str) -> Test:
        low, high = self.builds(text)

        def equals(version: str) -> bool:
            return version == text or low <= self.sort(version) < high

        return lambda version: _or_false(equals, version)


def _or_false(test: Test, version: str) -> bool:
    try:
        return test(version)
    except Invalid:
        return False


def _is_none(_text: str) -> Any:
    raise Invalid("this format has no versions")


NO_VERSIONS: Final = Ranges(sort=_is_none, builds=_is_none, other=_is_none)
