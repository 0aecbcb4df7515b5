"""
The list of the files of a twin, its signature, and what a place of twins does: a folder or a bucket.

==========================  ===========================================================================================
``.twin/twin.json``         the digest of the list, and the statement about it that the server has signed, if any
``.twin/<digest>.list``     a line for each file, sorted by path: its sha256, its size in bytes, and its path
everything else             the files, as clients get them
==========================  ===========================================================================================

A round first adds and replaces files, then writes the list, then ``twin.json``, and last removes what the list has no
more: a round that is killed leaves a twin that works, and the next one goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from pkgrepo.client.transfers.files import Draft
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.signed_lists import Listed, Manifest, find_problem, is_plain_path, iter_list
from pkgrepo.untrusted.strict_json import ERRORS

STATE: Final = ".twin"
MANIFEST: Final = f"{STATE}/twin.json"
FORM: Final = "pkgrepo twin 1"
OCTETS: Final = "application/octet-stream"


class Twin(Protocol):
    """
    The place of the twin of one repository. ``written`` counts the files that were written.

    With ``has_addresses`` a document can also be stored at the address of its folder, which may end with a slash.
    """

    written: int

    @property
    def has_addresses(self) -> bool:
        """Whether a document can also be stored at the address of its folder."""

    def known(self, path: str, sha256: str) -> Listed | None:
        """The file at a path if it is there with this digest, by the last list and its size; else None."""

    def draft(self, path: str) -> Draft:
        """Begin to write a file. :raises Invalid: its path cannot be used; :raises OSError: it cannot be written"""

    async def keep(self, path: str, draft: Draft, expected: str | None = None, content_type: str = OCTETS) -> Listed:
        """End a file, unless it is there with the same bytes. :raises DigestMismatch: it has not the expected sha256"""

    async def finish(self, files: Mapping[str, Listed]) -> str:
        """Write the list of all files. Returns its digest; ``publish`` makes it the list of the twin."""

    async def publish(self, files: Mapping[str, Listed], digest: str, signed: Mapping[str, Any]) -> int:
        """Make a list that of the twin, and remove the files that it has not. Returns how many were removed."""

    async def is_published(self, digest: str) -> bool:
        """Whether this list is that of the twin already, and signed."""

    async def close(self) -> None:
        """Need it no more."""


async def write(twin: Twin, path: str, data: bytes, content_type: str) -> Listed:
    """Write a small file."""
    with twin.draft(path) as draft:
        draft.write(data)
        return await twin.keep(path, draft, None, content_type)


def list_path(digest: str) -> str:
    """Where the list with a digest is."""
    return f"{STATE}/{digest}.list"


def read_list(data: bytes | None, manifest: Manifest, where: str) -> Iterator[tuple[str, Listed]]:
    """The files of a list, None if it is missing. :raises Invalid: it is missing or damaged"""
    path = f"{where}/{list_path(manifest.list_sha256)}"
    if data is None:
        raise Invalid(f"the list of the twin, {path}, is missing")
    if hashlib.sha256(data).hexdigest() != manifest.list_sha256:
        raise Invalid(f"the list of the twin, {path}, is damaged")
    yield from iter_list(data)


def render_manifest(repository: str, digest: str, files: int, signed: Mapping[str, Any]) -> bytes:
    """The manifest of a list."""
    manifest = Manifest(
        form=FORM,
        repository=repository,
        list_sha256=digest,
        files=files,
        statement=signed.get("statement", ""),
        signature=signed.get("signature", ""),
        key=signed.get("key", ""),
    )
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read_manifest(data: bytes | None, where: str) -> Manifest | None:
    """The manifest of a twin, None if there is none. :raises Invalid: it cannot be read"""
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except ERRORS as error:
        raise Invalid(f"{where}/{MANIFEST} is damaged: {error}") from None
    if found.form != FORM:
        raise Invalid(f"the twin in {where} has the form {found.form!r}, and this version knows {FORM!r}")
    return found


def check_path(path: str) -> list[str]:
    """The parts of a path. :raises Invalid: no file of a twin can have it"""
    parts = path.split("/")
    if not is_plain_path(path) or parts[0] == STATE:
        raise Invalid(f"{path!r} is no path of a file")  # the server's names are not trusted with the disk
    return parts


def signature_problems(manifest: Manifest, key: bytes | None) -> list[str]:
    """What is wrong with the signature by ``key`` (PEM; None: the key in the manifest). :raises Invalid: no key"""
    problem = find_problem(manifest, key or manifest.key.encode())
    return [problem] if problem else []
