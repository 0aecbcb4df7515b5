"""
How the files of a format are attested, and the ranks of what metadata claim of a version.

====  ====================  =======================================================================================
rank  in sentences          what a version has
====  ====================  =======================================================================================
3     a staged publish      somebody approved it before it was published
2     a trusted publisher   provenance, and a pipeline published it without a stored token
1     provenance            a signed statement of the pipeline that made it
0     no provenance         none of these
====  ====================  =======================================================================================

They are those of pnpm (``trustPolicy``) and deno.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from attrs import frozen

from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.sigstore.verification import Verified
from pkgrepo.storage.catalog.file_facts import Attested

LONGEST: Final = 500  # characters of what a certificate names


class Rank(IntEnum):
    """What a version has, see the table above."""

    NONE = 0
    PROVENANCE = 1
    PUBLISHER = 2
    STAGED = 3

    @property
    def words(self) -> str:
        """What it is in sentences."""
        return ("no provenance", "provenance", "a trusted publisher", "a staged publish")[self]


@frozen
class Claim:
    """
    What metadata say of a version: its ``rank``, and whether they say that it has ``provenance``.

    One that is ``unsaid`` has the best rank that there may be: whether it has provenance is not said, and known when
    its attestations were asked for.
    """

    rank: Rank = Rank.NONE
    provenance: bool = False
    unsaid: bool = False

    @classmethod
    def of(cls, *, provenance: bool = False, pipeline: bool = False, approved: bool = False) -> Claim:
        """That of a version with these, as pnpm ranks them: a publisher counts only with provenance."""
        if approved:
            return cls(Rank.STAGED, provenance)
        if not provenance:
            return cls()
        return cls(Rank.PUBLISHER if pipeline else Rank.PROVENANCE, provenance)


UNSAID: Final = Claim(Rank.PROVENANCE, provenance=True, unsaid=True)


@frozen
class AttestedFile:
    """A file as an attestation must name it: its package (a key), version, path, and digests (hex) by algorithm."""

    package: str
    version: str
    path: str
    digests: Mapping[str, str]


@frozen(kw_only=True, eq=False)
class Attests:
    """
    How the files of a format are attested.

    ``claim`` reads the metadata of a version and the paths of its files. ``suffix`` ends the path of the document with
    the attestations of a file, behind the path of that. ``verify`` is given such a document, the file and the root; it
    blocks for some milliseconds, and raises ``Invalid`` if no provenance of the file is verified.

    With ``unsaid_from_ms`` documents of upstreams do not tell which files are attested: each one that was published
    from then on may be.
    """

    claim: Callable[[Mapping[str, Any], Sequence[str]], Claim]
    suffix: str
    verify: Callable[[bytes, AttestedFile, TrustedRoot], Attested]
    unsaid_from_ms: int | None = None

    def claim_of_upstream(self, meta: Mapping[str, Any], paths: Sequence[str], published_ms: int | None) -> Claim:
        """What is claimed of a version of an upstream, by its metadata, the paths of its files, and its date."""
        found, from_ms = self.claim(meta, paths), self.unsaid_from_ms
        if from_ms is None or found.provenance or (published_ms is not None and published_ms < from_ms):
            return found
        return UNSAID


def attested_by(found: Verified, root: TrustedRoot) -> Attested:
    """What a verified statement tells of the pipeline that signed it, as far as its certificate names that."""
    signer = found.signer
    return Attested(
        root=root.id,
        verified=True,
        predicate_type=found.predicate_type[:LONGEST],
        signer=signer.name[:LONGEST],
        issuer=signer.says(8, 1)[:LONGEST],
        repository=signer.repository[:LONGEST],
        workflow=signer.says(18, 9)[:LONGEST],
        ref=signer.says(14, 6)[:LONGEST],
        commit=signer.says(13, 3)[:LONGEST],
    )
