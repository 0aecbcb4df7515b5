"""Which versions a requirement accepts, and people mean, as ``Gem::Requirement`` decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test

from .names import bound_key, builds, order_key

_REQUIREMENT: Final = re.compile(r"\S+(?: \((.*)\))?")
_CLAUSE: Final = re.compile(r"(=|!=|>=|<=|~>|>|<)?\s*([0-9][0-9A-Za-z.-]*)")
_COMPARISONS: Final[Mapping[str, Callable[[bytes, bytes], bool]]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a dependency, such as ``rack (>= 2.0, < 4)``, accepts a version, which may end with a platform.

    None if it cannot be read.
    """
    found = _REQUIREMENT.fullmatch(dependency)
    if found is None:
        return None
    number = version.partition("-")[0]
    clauses = [_CLAUSE.fullmatch(each.strip()) for each in (found[1] or ">= 0").split(",")]
    try:
        results = [None if each is None else _holds(number, each[1] or "=", each[2]) for each in clauses]
    except Invalid:
        return None
    return None if None in results else all(results)


def _holds(number: str, sign: str, bound: str) -> bool:
    if sign == "~>":
        return order_key(number) >= order_key(bound) and order_key(_release(number)) < order_key(_bumped(bound))
    return _COMPARISONS[sign](order_key(number), order_key(bound))


def _release(number: str) -> str:
    """A version without what makes it a prerelease: all from the first part with a letter."""
    parts = number.replace("-", ".pre.").split(".")
    at = next((index for index, each in enumerate(parts) if not each.isdigit()), len(parts))
    return ".".join(parts[:at]) or "0"


def _bumped(number: str) -> str:
    """The first release that ``~>`` excludes: 2 of 1.4, and 1.5 of 1.4.2."""
    parts = _release(number).split(".")
    parts = parts[:-1] if len(parts) > 1 else parts
    return ".".join([*parts[:-1], str(int(parts[-1]) + 1)])


def _pessimistic(bound: str) -> Test:
    bound_key(bound)  # it is a version
    return lambda version: _holds(version.partition("-")[0], "~>", bound)


RANGES: Final = Ranges(
    sort=bound_key,
    builds=builds,
    operators={"~>": _pessimistic},
    written=">= 1.5, < 2.0, ~> 1.5, 1.5.* or 1.5",
)
