"""
Sort keys of versions: bytes that compare in conda's order (CEP 33).

A version is an optional epoch, parts between which are '.' or '_', and an optional local version after '+'. A part is
split into runs of digits and runs of letters, with a 0 before letters at its beginning. Versions are compared part by
part and run by run; what is missing counts as 0. The order is: 'dev', '_', other letters, numbers, 'post'.

A key has the parts of the version and then those of the local one; zeros at the end of parts and parts without others
at the end are dropped. No token is a prefix of another one:

=================================  ==================================================================================
token                              bytes
=================================  ==================================================================================
k zeros (or parts of zeros),       01, k (4 bytes), then the letters and 00, or the part
then letters (or a part that
begins with such a token)
the end                            02; all that is missing is zero
k zeros (or parts of zeros),       03, 2**32 - 1 - k (4 bytes), then the number (its length in bytes, and the bytes;
then a number (or such a part)     FF for 'post'), or the part
=================================  ==================================================================================

A constraint says which versions satisfy it, as packages write about what they depend on. ``1.2|>=2,<3``: alternatives,
each of several conditions. A condition is an operator with a version, a version alone, or one with a '*' at its end.
Regular expressions and parentheses, which hardly any package uses, are not read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test, one_build

_RUNS: Final = re.compile(r"[0-9]+|[^0-9]+")
_LESS, _END, _MORE = b"\x01", b"\x02", b"\x03"
_MOST: Final = 0xFFFFFFFF
_POST: Final = b"\xff"


@lru_cache(maxsize=4096)
def is_prerelease(version: str) -> bool:
    """Whether a version has a word that conda sorts before the release, such as rc or dev; any one but post."""
    words = re.findall("[a-z]+", version.lower().partition("+")[0])
    return any(word != "post" for word in words)


def sort_key(version: str) -> bytes:
    """The sort key of a version. :raises Invalid: it is no conda version"""
    try:
        return order_key(version)
    except ValueError:
        raise Invalid(f"{version!r} is no version", "version") from None


def order_key(version: str) -> bytes:
    """
    The sort key of a version; versions that conda takes for equal, such as 1.0 and 1.0.0, have the same one.

    :raises ValueError: it has an empty part
    """
    epoch, mark, rest = version.lower().rpartition("!")
    main, plus, local = rest.partition("+")
    parts = [epoch if mark else "0", *_split_main(main)]
    return _list_key(parts) + _list_key(local.replace("_", ".").split(".") if plus else [])


def _split_main(text: str) -> list[str]:
    if not text.endswith("_"):
        return text.replace("_", ".").split(".")
    # A '_' at the end belongs to the last part, so that 1.0.1_ comes before 1.0.1a, as OpenSSL numbers its versions.
    parts = text[:-1].replace("_", ".").split(".")
    return [*parts[:-1], parts[-1] + "_"]


def _list_key(parts: Sequence[str]) -> bytes:
    keys = [_part_key(part) for part in parts]
    return _tokens([(0 if key == _END else -1 if key.startswith(_LESS) else 1, key) for key in keys])


def _part_key(part: str) -> bytes:
    if not part:
        raise ValueError("empty part")
    return _tokens([*([] if part[0].isdigit() else [_run_key("0")]), *map(_run_key, _RUNS.findall(part))])


def _run_key(run: str) -> tuple[int, bytes]:
    """A run with its sign: letters are less than zero, in the order of their bytes."""
    if not run.isdigit():
        return (1, _POST) if run == "post" else (-1, ("DEV" if run == "dev" else run).encode() + b"\x00")
    value = int(run)
    size = (value.bit_length() + 7) // 8
    return (1 if value else 0), bytes((size,)) + value.to_bytes(size, "big")


def _tokens(signed: Sequence[tuple[int, bytes]]) -> bytes:
    """The tokens of runs or parts with their signs."""
    found: list[bytes] = []
    zeros = 0
    for sign, key in signed:
        if sign == 0:
            zeros += 1
            continue
        count = zeros if sign < 0 else _MOST - zeros
        found.append((_LESS if sign < 0 else _MORE) + count.to_bytes(4, "big") + key)
        zeros = 0
    return b"".join((*found, _END))


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


def accepts(dependency: str, version: str) -> bool | None:
    """Whether a dependency accepts a version, whatever it says of builds. None if it has another form"""
    try:
        return satisfies(version, split_dependency(dependency)[1])
    except ValueError:
        return None


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


def _begins(start: str) -> Test:
    key = sort_key(start)
    return lambda version: _begins_with(version, start) or sort_key(version) == key


def _compatible(bound: str) -> Test:
    sort_key(bound)
    return lambda version: sort_key(version) >= sort_key(bound) and _meets(version, f"~={bound}")


def _constraint(text: str) -> Test | None:
    """The test of a constraint with alternatives, which have one line between them."""
    if "|" not in text:
        return None
    for alternative in text.split("|"):
        for condition in alternative.split(","):
            found = _CONDITION.fullmatch(condition)
            if found is None or not found[2]:
                raise Invalid(f"{condition!r} is no version with an operator before it")
            sort_key(found[2].rstrip(".") if found[3] else found[2])
    return lambda version: bool(sort_key(version)) and satisfies(version, text)


RANGES: Final = Ranges(
    sort=sort_key,
    builds=one_build(sort_key),
    operators={"=": _begins, "~=": _compatible},
    begins=_begins,
    other=_constraint,
    written=">=1.5,<2, =1.5, 1.5.* or 1.5",
)
