"""
The questions that are asked of upstream registries.

The scope of a name is sent as clients send it, with its slash encoded.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.npm.packument.document import FULL_TYPE
from pkgrepo.proxy.documents.held import DocumentRequest

from .normaliser import NORMALISER
from .verbatim import ATTESTATIONS_NORMALISER, KEYS_NORMALISER

KEYS: Final = "-/npm/v1/keys"


def packument_question(name: str) -> DocumentRequest:
    """The document of a package, in the full form: some mirrors have no other."""
    return DocumentRequest(
        key=f"packument/{name}",
        package_key=name,
        name=name,
        urls=lambda url: (f"{url}/{_encoded(name)}",),
        accept=FULL_TYPE,
        normaliser=NORMALISER,
    )


def attestations_question(name: str, version_text: str) -> DocumentRequest:
    """The attestations of a version."""
    version = f"{name}@{version_text}"
    return DocumentRequest(
        key=f"attestations/{version}",
        package_key=name,
        name=version,
        urls=lambda url: (f"{url}/-/npm/v1/attestations/{_encoded(version)}",),
        accept=FULL_TYPE,
        normaliser=ATTESTATIONS_NORMALISER,
        kind="attestations",
    )


def keys_question() -> DocumentRequest:
    """The keys that the upstream signs packages with."""
    return DocumentRequest(
        key="keys",
        package_key="",
        name="keys",
        urls=lambda url: (f"{url}/{KEYS}",),
        accept=FULL_TYPE,
        normaliser=KEYS_NORMALISER,
        kind="keys",
    )


def _encoded(name: str) -> str:
    return name.replace("/", "%2f")
