"""
Packuments: the documents of a package, in a full form and in an abbreviated one that suffices to install.

Both are spliced from the fragments of versions (see ``version_fragments``) below a top, which tells about the package.
A change renders the fragments of the versions that it changes; the others are joined unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import Factory, frozen

from pkgrepo.repositories.publish.index import Spliced

FULL_TYPE: Final = "application/json"
SHORT_TYPE: Final = "application/vnd.npm.install-v1+json"

# Copied from the latest version to the top of the full form.
TOP_FIELDS: Final = ("description", "author", "contributors", "repository", "homepage", "bugs", "license", "keywords")

_encode = msgspec.json.Encoder().encode


@frozen
class Top:
    """
    The part of a packument above its versions.

    ``created`` and ``modified`` are times as texts, empty when unknown. ``fields`` are the further members of the full
    form, as JSON. ``revision`` is empty for a package that cannot be written to.
    """

    name: str
    tags: Mapping[str, str]
    revision: str = ""
    created: str = ""
    modified: str = ""
    fields: Mapping[str, str] = Factory(dict)


def splice_full(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The full form, spliced from the sorted fragments of all versions."""
    head: dict[str, Any] = {"_id": top.name, "_rev": top.revision, "name": top.name, "dist-tags": top.tags}
    head |= {key: msgspec.Raw(text.encode()) for key, text in top.fields.items()}
    return Spliced(head=_head(head, top, times), fragments=fragments)


def splice_short(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The abbreviated form. It has ``time``, unlike the public registry's: pnpm's ``minimumReleaseAge`` needs it."""
    head = {"name": top.name, "dist-tags": top.tags, **({"modified": top.modified} if top.modified else {})}
    return Spliced(head=_head(head, top, times), fragments=fragments)


def revision(name: str, serial: int) -> str:
    """The ``_rev`` of a package; each change gives it another one."""
    return f"{serial}-{hashlib.sha256(f'{name}:{serial}'.encode()).hexdigest()[:32]}"


def attestations_document(bundle: bytes, predicate_type: str) -> bytes:
    """The document at ``/-/npm/v1/attestations/<name>@<version>``, with the bundle as it was published."""
    return b'{"attestations":[{"predicateType":%b,"bundle":%b}]}' % (_encode(predicate_type), bundle)


def _head(head: Mapping[str, Any], top: Top, times: Sequence[bytes]) -> bytes:
    bounds = [
        b'"%b":%b' % (key, _encode(text))
        for key, text in ((b"created", top.created), (b"modified", top.modified))
        if text
    ]
    return b'%b,"time":{%b},"versions":{' % (_encode(head)[:-1], b",".join((*bounds, *times)))
