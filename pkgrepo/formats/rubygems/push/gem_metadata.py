"""
The outer archive of a gem: an uncompressed tar of three compressed files, and their signatures in signed gems.

Only these members are read, nothing is unpacked, and the content in ``data.tar.gz`` is hashed but not inflated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.source import Source
from pkgrepo.archives.streams import Gunzip, PlainStream
from pkgrepo.archives.tar_archive import Member, Tar
from pkgrepo.formats.rubygems.gemspec import GemSpec
from pkgrepo.formats.rubygems.limits import CHECKSUMS_SIZE, METADATA_SIZE, MOST_MEMBERS, SIGNATURE_SIZE

from .gemspec_yaml import METADATA, parse_gemspec
from .yaml_documents import read_document

DATA: Final = "data.tar.gz"
CHECKSUMS: Final = "checksums.yaml.gz"
SIGNATURE: Final = ".sig"

_FILES: Final = (METADATA, DATA, CHECKSUMS)
_MEMBERS: Final = frozenset({*_FILES, *(name + SIGNATURE for name in _FILES)})
_ALGORITHMS: Final = {"SHA1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512"}
_GZIP: Final = b"\x1f\x8b"
_PIECE: Final = 1024 * 1024  # bytes hashed at once


@frozen
class _Place:
    """Where the content of a member is in the file: its first byte, and its length."""

    start: int
    size: int


def inspect_gem(file: int | bytes) -> GemSpec:
    """
    The specification in a gem, given as a file descriptor (which stays open) or as bytes. Blocks: call it in a thread.

    :raises Invalid: it is damaged, has other members than a gem, or its specification cannot be served
    """
    source = Source(file, "the file")
    places = _members(source)
    for name in (METADATA, DATA):
        if name not in places:
            raise source.refuse(f"has no {name}")
    if source.read(places[DATA].start, min(2, places[DATA].size)) != _GZIP:
        raise source.refuse(f"has a {DATA} that is not compressed with gzip")
    if CHECKSUMS in places:
        _check_sums(source, places)
    spec, signed = parse_gemspec(source, _inflated(source, places[METADATA], METADATA, METADATA_SIZE))
    if signed:
        for name in _FILES:
            if name in places and name + SIGNATURE not in places:
                raise source.refuse(f"has certificates, but no {name}{SIGNATURE}")
    return spec


def _members(source: Source) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    stream = PlainStream(source)
    for member in Tar(source, stream):
        _check_member(source, member, places)
        places[member.name] = _Place(stream.position, member.size)
    return places


def _check_member(source: Source, member: Member, places: Mapping[str, _Place]) -> None:
    if not member.is_file or member.name not in _MEMBERS:
        raise source.refuse(f"has a member {member.name[:100]!a}, which is none of a gem's files")
    if member.name in places or len(places) >= MOST_MEMBERS:
        raise source.refuse(f"has the member {member.name} twice")
    if member.name.endswith(SIGNATURE) and member.size > SIGNATURE_SIZE:
        raise source.refuse(f"has a {member.name} of more than {SIGNATURE_SIZE} bytes")


def _check_sums(source: Source, places: Mapping[str, _Place]) -> None:
    """Compare the digests that the gem names with those of its members; algorithms that are unknown are left out."""
    document = read_document(source, _inflated(source, places[CHECKSUMS], CHECKSUMS, CHECKSUMS_SIZE), CHECKSUMS)
    for name, algorithm in _ALGORITHMS.items():
        expected = document.get(name)
        if expected is None:
            continue
        if not isinstance(expected, dict):
            raise source.refuse(f"has a {CHECKSUMS} whose {name} is no mapping")
        for member in expected:
            if member not in (METADATA, DATA):
                raise source.refuse(f"has a checksum of {member[:100]!a}, which is none of its files")
        for member in (METADATA, DATA):
            _check_sum(source, member, places[member], algorithm, expected.get(member))


def _check_sum(source: Source, member: str, place: _Place, algorithm: str, expected: Any) -> None:
    if expected is None:
        return
    if not isinstance(expected, str) or _digest(source, place, algorithm) != expected.lower():
        raise source.refuse(f"has a {member} whose {algorithm.upper()} is not the one in {CHECKSUMS}")


def _digest(source: Source, place: _Place, algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    at, end = place.start, place.start + place.size
    while at < end:
        piece = source.read(at, min(_PIECE, end - at))
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def _inflated(source: Source, place: _Place, name: str, limit: int) -> bytes:
    """The content of a compressed member, of at most ``limit`` bytes before and after."""
    if place.size > limit:
        raise source.refuse(f"has a {name} of more than {limit} bytes")
    packed = Source(source.read(place.start, place.size), f"{name} in {source.name}")
    data = Gunzip(packed).read(limit + 1)
    if len(data) > limit:
        raise source.refuse(f"has a {name} that inflates to more than {limit} bytes")
    return data
