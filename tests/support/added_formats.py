"""A format that the tests add to those of the server, in the way in which any other one is added."""

from __future__ import annotations

from pkgrepo.composition.core import FORMATS
from tests.support.toy_format.facts import FACTS
from tests.support.toy_format.format import toy
from tests.support.toy_format.names import NAME as TOY

ADDED = frozenset({TOY})


def add_formats() -> None:
    """Add the toy format, once in each process."""
    FORMATS.append((FACTS, lambda _config: toy()))
