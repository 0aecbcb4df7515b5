"""The normaliser of documents that are passed on as they are."""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.values import Context, Normalised
from pkgrepo.untrusted.strict_json import ERRORS, describe

KEYS_NORMALISER: Final = f"{__name__}:keep_keys"
ATTESTATIONS_NORMALISER: Final = f"{__name__}:keep_attestations"

LARGEST: Final = 8 * 1024 * 1024  # bytes; the attestations of a version have some 10 KiB

_BODY: Final = "body"  # the key of the text in the top


def keep_keys(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The keys of a registry. :raises Invalid: it is no list of them, such as an error that says 200"""
    return _keep(source, "keys")


def keep_attestations(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The attestations of a version. :raises Invalid: it is no list of them"""
    return _keep(source, "attestations")


def _keep(source: bytes, needed: str) -> Normalised:
    """The document as the top of its parts, whose member ``needed`` is a list of objects."""
    if len(source) > LARGEST:
        raise Invalid(f"it is larger than {LARGEST} bytes")
    try:
        found = msgspec.json.decode(source, type=dict[str, msgspec.Raw])
        text = source.decode()
        msgspec.json.decode(found.get(needed, b""), type=list[dict[str, msgspec.Raw]])
    except ERRORS as error:
        raise Invalid(f"it is no JSON object with a list of {needed}: {describe(source, error)}") from None
    return Normalised(top={_BODY: text}, entries=iter(()))


def kept_text(top: dict[str, str]) -> str:
    """The document in the top of its parts."""
    return top[_BODY]
