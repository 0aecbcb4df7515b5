"""What the schemas have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

END = r"$(?!\n)"  # in Python, the dollar alone also stands before a line feed at the end
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}" + END
LARGEST = 2**63 - 1  # what the catalog can keep of a number

Name = Annotated[
    str,
    Meta(
        pattern=NAME_PATTERN,
        description="1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit",
    ),
]
Text = Annotated[str, Meta(max_length=10_000)]
Line = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*" + END)]
Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*" + END)]


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a request brings."""
