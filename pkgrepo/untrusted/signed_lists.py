"""
Signed lists of files: a line for each file, sorted by path, with its sha256 in hex, its size in bytes, and its path.

A manifest says of which repository a list is; the server has signed a statement with the digest of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from attrs import frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from pkgrepo.errors import Invalid

_LINE: Final = re.compile(r"([0-9a-f]{64}) (\d{1,19}) ([^\n]+)\n")


@frozen
class Listed:
    """A file: its size in bytes, and its sha256 in hex."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a list is: of which ``repository``, its digest, and how many files it has. ``form`` is that of what has it,
    with which the statement begins.

    ``statement`` is the text that was signed, ``signature`` its Ed25519 signature in Base64, and ``key`` the public key
    in PEM; all are empty if the list is not signed.
    """

    form: str
    repository: str
    list_sha256: str
    files: int
    statement: str = ""
    signature: str = ""
    key: str = ""


def render_list(files: Mapping[str, Listed]) -> bytes:
    """The list of these files, by path."""
    return "".join(f"{each.sha256} {each.size} {path}\n" for path, each in sorted(files.items())).encode()


def iter_list(data: bytes) -> Iterator[tuple[str, Listed]]:
    """The files of a list, whose paths may be anything. :raises Invalid: a line is malformed"""
    for line in data.decode("utf-8", "replace").splitlines(keepends=True):
        found = _LINE.fullmatch(line)
        if found is None:
            raise Invalid("it has a line that is malformed")
        yield found[3], Listed(int(found[2]), found[1])


def is_plain_path(path: str) -> bool:
    """Whether a path is relative, and leads nowhere but down."""
    return path.isprintable() and "\\" not in path and not any(each in ("", ".", "..") for each in path.split("/"))


def find_problem(manifest: Manifest, pem: bytes) -> str:
    """
    What is wrong with the signature of a manifest by a key (PEM), as a sentence; empty if it is right.

    :raises Invalid: the key is no Ed25519 key
    """
    if not manifest.signature:
        return "the list is not signed"
    if not _is_signed(manifest, pem):
        return "the signature of the list is wrong, or by another key"
    lines = manifest.statement.splitlines()
    if lines[:1] != [manifest.form]:  # the list of a twin is none of a bundle
        return "the signature is of something else"
    if f"list sha256:{manifest.list_sha256}" not in lines or f"repository {manifest.repository}" not in lines:
        return "the signature is of another list"
    return ""


def _is_signed(manifest: Manifest, pem: bytes) -> bool:
    try:
        public = serialization.load_pem_public_key(pem)
    except ValueError:
        raise Invalid("the key is no public key in PEM") from None
    if not isinstance(public, Ed25519PublicKey):
        raise Invalid("the key is no Ed25519 key")
    try:
        signature = msgspec.json.decode(msgspec.json.encode(manifest.signature), type=bytes)
        public.verify(signature, manifest.statement.encode())
    except (InvalidSignature, msgspec.MsgspecError):
        return False
    return True
