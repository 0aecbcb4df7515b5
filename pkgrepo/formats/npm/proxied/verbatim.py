"""The normaliser of documents that are passed on as they are."""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.values import Context, Normalised
from pkgrepo.untrusted.json_errors import ERRORS, describe

VERBATIM: Final = f"{__name__}:keep"

LARGEST: Final = 8 * 1024 * 1024  # bytes; the attestations of a version have some 10 KiB

_BODY: Final = "body"  # the key of the text in the top


def keep(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The document as the top of its parts. :raises Invalid: it is no JSON object"""
    if len(source) > LARGEST:
        raise Invalid(f"it is larger than {LARGEST} bytes")
    try:
        msgspec.json.decode(source, type=dict[str, msgspec.Raw])
        text = source.decode()
    except ERRORS as error:
        raise Invalid(f"it is not a JSON object: {describe(source, error)}") from None
    return Normalised(top={_BODY: text}, entries=iter(()))


def kept_text(top: dict[str, str]) -> str:
    """The document in the top of its parts."""
    return top[_BODY]
