"""What answers with files and checksums say of them: digests, validators, and how long they may be cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile, FilePath
from pkgrepo.gateway.answers.content import SAFE, FileHead, is_private
from pkgrepo.http.answers import Answer, text_answer
from pkgrepo.model import Repository, RepositoryType

YEAR: Final = 31_536_000  # seconds


def present_file(repository: Repository, target: FilePath, digests: Mapping[str, str]) -> FileHead:
    """The head of the answer with a file: both forms of its digests that spare Maven 3.9 the requests for checksums."""
    sha1 = digests.get("sha1")
    etag = f'"{{SHA1{{{sha1}}}}}"' if sha1 is not None else f'"{digests["sha256"]}"' if "sha256" in digests else None
    sums = ((f"X-Checksum-{each.upper()}", digests[each]) for each in ALGORITHMS if each in digests)
    return FileHead(
        None if etag is None else etag.encode("ascii"),
        (
            (b"Cache-Control", cache_control(repository, target)),
            *((name.encode("ascii"), digest.encode("ascii")) for name, digest in sums),
            *SAFE,
        ),
    )


def cache_control(repository: Repository, target: FilePath) -> bytes:
    """
    How long what is at a path may be cached.

    Files of releases and timestamped snapshots never change where they cannot be overwritten; upstreams never change
    theirs.
    """
    private = is_private(repository)
    lasting = isinstance(target, ArtifactFile) and not target.literal_snapshot
    if repository.type is RepositoryType.HOSTED:
        lasting = lasting and not PushRules.of(repository).allow_overwrite
    else:
        lasting = lasting and repository.type is RepositoryType.PROXY
    if not lasting:
        return b"private, no-cache" if private else b"no-cache"
    return b"%s, max-age=%d, immutable" % (b"private" if private else b"public", YEAR)


def checksum_answer(
    repository: Repository, target: FilePath, algorithm: str, digests: Mapping[str, str], modified_s: int | None
) -> Answer:
    """The checksum of what is at a path and has these digests, among them one by ``algorithm``."""
    digest = digests[algorithm]
    return text_answer(
        digest,
        content_type=b"text/plain",
        etag=f'"{algorithm}-{digest}"'.encode("ascii"),
        last_modified=modified_s,
        headers=((b"Cache-Control", cache_control(repository, target)), *SAFE),
    )
