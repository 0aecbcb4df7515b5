"""Regular expressions for texts from outside, in the common subset of Python and JSON Schema."""

from __future__ import annotations

from typing import Final

END: Final = r"$(?!\n)"  # in Python, the dollar alone also matches before a line feed at the end
ONE_LINE: Final = r"^[^\x00-\x1f\x7f]*" + END  # no control characters
