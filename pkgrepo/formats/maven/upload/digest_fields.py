"""Digests that clients announce for a file, in header fields and checksum files, and the file as part of a release."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import ArtifactFile, media_type
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.untrusted.text import quoted


def new_file(target: ArtifactFile, blob: BlobInfo, **more: Any) -> NewFile:
    """The file at a path as it is published; ``more`` are further attributes."""
    attrs: dict[str, Any] = {"classifier": target.classifier, "extension": target.extension, **more}
    if target.timestamp is not None:
        attrs["timestamp"] = target.timestamp
        attrs["build"] = target.build
    if target.role is not None:
        attrs["role"] = target.role
    return NewFile(path=target.path, blob=blob, media_type=media_type(target.path), attrs=attrs)


def make_release(
    coordinates: Coordinates,
    files: Sequence[NewFile],
    meta: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    reuse: bool = False,
    kind: str = "published",
    guard: Callable[[Transaction], None] | None = None,
) -> Release:
    """
    The release of these files, all of one version.

    ``meta`` is what its POM says of it; None if no POM is among the files, which leaves that of an existing version.
    The other arguments are those of L{Release}.
    """
    return Release(
        package_key=coordinates.package_key,
        package_name=coordinates.package_key,
        version_key=coordinates.version,
        version_text=coordinates.version,
        sort=sort_key(coordinates.version),
        files=tuple(files),
        meta=meta or {},
        overwrite=overwrite,
        reuse=reuse,
        describes=meta is not None,
        kind=kind,
        guard=guard,
    )


HEX_LENGTHS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}  # digits by algorithm

# The algorithms' names in Digest (RFC 3230), and in Content-Digest and Repr-Digest (RFC 9530).
_NAMES: Final = {b"md5": "md5", b"sha": "sha1", b"sha-256": "sha256", b"sha-512": "sha512"}
_FIELDS: Final = (b"digest", b"content-digest", b"repr-digest")

_BSD = re.compile(r"[^=\r\n]*=\s*([0-9a-fA-F]+)\s*")  # SHA1 (app.jar) = 0f1e...


def read_digests(request: Request) -> dict[str, str]:
    """
    The announced digests in lower-case hex, by algorithm; those of other algorithms are ignored.

    :raises Invalid: one is malformed, or two of one algorithm differ
    """
    found: dict[str, str] = {}
    for algorithm, digest in _announced(request):
        if len(digest) != HEX_LENGTHS[algorithm]:
            raise Invalid(f"the request announces a {algorithm} digest of a wrong length")
        if found.setdefault(algorithm, digest) != digest:
            raise Invalid(f"the request announces two {algorithm} digests")
    return found


def parse_checksum(body: bytes, algorithm: str) -> str:
    """
    The digest in a checksum file, in lower-case hex.

    It may be in upper case, may be followed by the name of the file, and may follow it as in ``SHA1(app.jar)= 0f1e``.

    :raises Invalid: there is none of this algorithm
    """
    text = body.decode("latin-1").strip()
    match = re.match(r"([0-9a-fA-F]+)(?=\s|$)", text) or _BSD.fullmatch(text)
    if match is None or len(match[1]) != HEX_LENGTHS[algorithm]:
        raise Invalid(f"this is no {algorithm} checksum: {quoted(text[:80])}")
    return match[1].lower()


def _announced(request: Request) -> Iterator[tuple[str, str]]:
    for algorithm in HEX_LENGTHS:
        value = request.header(b"x-checksum-" + algorithm.encode("ascii"))
        if value is not None:
            if re.fullmatch(rb"[0-9a-fA-F]+", value.strip()) is None:
                raise Invalid(f"X-Checksum-{algorithm.capitalize()} is no hex digest")
            yield algorithm, value.strip().decode("ascii").lower()
    md5 = request.header(b"content-md5")
    if md5 is not None:
        yield "md5", _hex(md5, "Content-MD5")
    for field in _FIELDS:
        for member in (request.header(field) or b"").split(b","):
            name, equals, value = member.strip().partition(b"=")
            known = _NAMES.get(name.strip().lower())
            if known is not None and equals:
                yield known, _hex(value.strip().strip(b":"), field.decode("ascii"))


def _hex(value: bytes, field: str) -> str:
    try:
        return b64decode(value.strip(), validate=True).hex()
    except ValueError:
        raise Invalid(f"{field} has a digest that is no base64") from None
