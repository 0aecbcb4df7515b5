"""
What faults come to: servers with what they keep their data in, which is one module for each kind.

:mod:`.estate` says what all have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .estate import Engine
from .nodes import NODES
from .sqlite import SQLITE

ENGINES: Final[Mapping[str, Engine]] = {each.name: each for each in (SQLITE, NODES)}
