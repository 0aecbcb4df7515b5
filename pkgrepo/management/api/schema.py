"""Base structs and types of the schemas: ``Body`` for what requests send, ``Record`` for what answers contain."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import UNSET, Meta

from pkgrepo.model.structs import from_attributes
from pkgrepo.untrusted.text import END, ONE_LINE

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}" + END
LARGEST = 2**63 - 1  # the largest integer of the catalog

Name = Annotated[
    str,
    Meta(
        pattern=NAME_PATTERN,
        description="1 to 64 letters, digits, dots, dashes and underscores; the first is a letter or a digit",
    ),
]
Text = Annotated[str, Meta(max_length=10_000)]
Line = Annotated[str, Meta(max_length=200, pattern=ONE_LINE)]
Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=ONE_LINE)]


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""

    def given(self, *names: str) -> dict[str, Any]:
        """The fields among ``names`` that the request sets, with their values."""
        return {name: value for name in names if (value := getattr(self, name)) is not UNSET}


class Record(msgspec.Struct, kw_only=True):
    """
    A value in the form in which the API returns it.

    ``measured`` are the fields that change without an edit of the object: sizes, counts, times of use.
    """

    measured: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_attributes(cls, value: object, **others: Any) -> Self:
        """See L{from_attributes}."""
        return from_attributes(cls, value, **others)
