"""TOML documents from outside."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from pkgrepo.errors import Invalid

_LONG_KEY: Final = re.compile(r"(?:\.[^.=\n]*+){100}")


def read_toml(text: str) -> dict[str, Any]:
    """The table of a document. Takes some 0.5 s for a MiB. :raises Invalid: it is malformed"""
    if _LONG_KEY.search(text):  # for which tomllib takes the square of its parts
        raise Invalid("it has a key of too many parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise Invalid(f"it is no TOML document: {str(error)[:200]}") from None
