"""
What a conda package has inside that runs when it is linked, or when its environment is activated.

=====================================  ============================================================================
``bin/.NAME-post-link.sh`` and peers   runs when the package is linked or unlinked
``etc/conda/activate.d/``              runs whenever the environment is activated
``*.pth`` and others of Python         runs whenever the Python of the environment starts
=====================================  ============================================================================
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pkgrepo.archives.inside import Difference, Inside, Shape, Signs, Word, look_inside, names_checked
from pkgrepo.archives.licence_texts import licence_files, licences_declared
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import ERRORS, describe

_AT: Final = r"^(?:\./)?"
_STEPS: Final = "(?:post-link|pre-link|pre-unlink)"


class _Index(msgspec.Struct):
    depends: list[Any] = []
    license: Any = None


def _read(data: bytes) -> Inside:
    """What ``info/index.json`` says. :raises Invalid: it cannot be read"""
    try:
        found = msgspec.json.decode(data, type=_Index)
    except ERRORS as error:
        raise Invalid(f"index.json cannot be read: {describe(data, error)}") from None
    said = [found.license] if isinstance(found.license, str) else []
    return Inside(
        shape=Shape(
            dependencies=names_checked(str(each).partition(" ")[0].lower() for each in found.depends),
            licences=names_checked(licences_declared(said), "licences"),
        )
    )


SIGNS: Final = Signs(
    names=[
        (re.compile(rf"{_AT}(?:bin|Scripts)/\.[^/]+-{_STEPS}\.(?:sh|bat)$", re.IGNORECASE), "install_script"),
        (re.compile(rf"{_AT}etc/conda/(?:de)?activate\.d/.", re.IGNORECASE), "install_script"),
        (re.compile(rf"{_AT}(?:.*/)?site-packages/[^/]+\.pth$", re.IGNORECASE), "pth"),
        (re.compile(rf"{_AT}(?:.*/)?site-packages/(?:site|user)customize(?:\.[^/]+$|/)", re.IGNORECASE), "pth"),
    ],
    texts=[(re.compile(rf"{_AT}info/index\.json$"), _read)],
    licences=licence_files(rf"{_AT}info/(?:licenses/)?(?:[^/]+/)?"),
)


CONTENTS: Final[frozenset[Word]] = frozenset({"install_script", "pth", "executable", "native_binary"})
DIFFERS: Final[frozenset[Difference]] = frozenset(
    {"install_script", "pth", "executable", "dependency", "size", "obfuscated", "licence"}
)


def look(content: int | bytes, path: str) -> Inside:
    """What a package has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    return look_inside(content, path, SIGNS)
