"""
What a distribution has inside that runs before anybody calls it.

=====================================  ============================================================================
in a wheel                             what it does
=====================================  ============================================================================
``*.pth``, ``sitecustomize``,          runs whenever Python starts, where it is put into ``site-packages`` (module
``usercustomize``                      ``site`` of the standard library)
``*.data/scripts/``                    programs that are put beside Python, and may have the name of another one
=====================================  ============================================================================

A source distribution is built by code of its own (PEP 517), or of its ``setup.py``.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.archives.inside import Signs, Word, look_inside

_WHEEL: Final = r"^(?:[^/]+\.data/(?:purelib|platlib)/)?"  # PEP 427: what goes into site-packages
_SITE: Final = r"(?:[^/]+\.pth$|(?:site|user)customize(?:\.[^/]+$|/))"

WHEEL: Final = Signs(
    names=[
        (re.compile(f"{_WHEEL}{_SITE}", re.IGNORECASE), "pth"),
        (re.compile(rf"^[^/]+\.data/data/(?:.*/)?{_SITE}", re.IGNORECASE), "pth"),
        (re.compile(r"^[^/]+\.data/scripts/."), "executable"),
    ]
)
SOURCES: Final = Signs(
    names=[
        (re.compile(r"\.pth$", re.IGNORECASE), "pth"),
        (re.compile(r"\.(?:c|cc|cpp|cxx|pyx|f|f90|rs|cu|m|mm|go)$", re.IGNORECASE), "native_build"),
    ]
)
_BUILT: Final = (".whl", ".egg")


def look(content: int | bytes, path: str) -> frozenset[Word]:
    """What a distribution has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    if path.lower().endswith(_BUILT):
        return look_inside(content, path, WHEEL)
    return look_inside(content, path, SOURCES) | {"install_script"}
