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
from typing import Final

from pkgrepo.archives.inside import Signs, Word, look_inside

_AT: Final = r"^(?:\./)?"
_STEPS: Final = "(?:post-link|pre-link|pre-unlink)"

SIGNS: Final = Signs(
    names=[
        (re.compile(rf"{_AT}(?:bin|Scripts)/\.[^/]+-{_STEPS}\.(?:sh|bat)$", re.IGNORECASE), "install_script"),
        (re.compile(rf"{_AT}etc/conda/(?:de)?activate\.d/.", re.IGNORECASE), "install_script"),
        (re.compile(rf"{_AT}(?:.*/)?site-packages/[^/]+\.pth$", re.IGNORECASE), "pth"),
        (re.compile(rf"{_AT}(?:.*/)?site-packages/(?:site|user)customize(?:\.[^/]+$|/)", re.IGNORECASE), "pth"),
    ]
)


def look(content: int | bytes, path: str) -> frozenset[Word]:
    """What a package has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    return look_inside(content, path, SIGNS)
