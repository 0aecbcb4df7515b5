"""
Which versions satisfy a constraint, as packages write it about what they depend on.

``1.2|>=2,<3``: alternatives, each of several conditions. A condition is an operator with a version, a version alone,
or one with a '*' at its end. Regular expressions and parentheses, which hardly any package uses, are not read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from .version_order import order_key

_DEPENDENCY: Final = re.compile(r"\s*([A-Za-z0-9_.-]+?)\s*([=!<>~ ].*)?")
_CONDITION: Final = re.compile(r"(==|!=|<=|>=|~=|<|>|=)?([A-Za-z0-9_.!+]*)(\*)?")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def split_dependency(text: str) -> tuple[str, str]:
    """
    The name that a dependency begins with, and its constraint, which is empty for any version.

    What it says of builds is left out. :raises ValueError: it has another form
    """
    found = _DEPENDENCY.fullmatch(text)
    if found is None:
        raise ValueError("unknown form")
    return found[1].lower(), next(iter((found[2] or "").split()), "")


def satisfies(version: str, constraint: str) -> bool:
    """Whether a version satisfies a constraint. :raises ValueError: the constraint has another form"""
    return any(
        all(_meets(version, condition) for condition in alternative.split(",")) for alternative in constraint.split("|")
    )


def _meets(version: str, condition: str) -> bool:
    found = _CONDITION.fullmatch(condition)
    if found is None:
        raise ValueError("unknown form")
    sign, star = found[1] or "==", found[3]
    bound = found[2].rstrip(".") if star else found[2]
    if not bound:
        return True
    if sign == "~=":
        return _compare(version, ">=", bound) and _begins_with(version, bound.rpartition(".")[0] or bound)
    if sign == "=" or (star and sign == "=="):
        return _begins_with(version, bound)
    if star and sign == "!=":
        return not _begins_with(version, bound)
    return _compare(version, sign, bound)


def _compare(version: str, sign: str, bound: str) -> bool:
    return _COMPARE[sign](order_key(version), order_key(bound))


def _begins_with(version: str, start: str) -> bool:
    """Whether a version is ``start`` or goes on after it: 1.2.3 and 1.2a begin with 1.2, and 1.20 does not."""
    version, start = version.lower(), start.lower()
    rest = version.removeprefix(start)
    return version.startswith(start) and not (start[-1].isdigit() and rest[:1].isdigit())
