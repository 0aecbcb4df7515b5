"""
The provenance of a tarball: what metadata claim, and the statement of the pipeline that made it.

Registries have the attestations of a version in one document: a statement of the registry about the publish, signed
with its key, and the provenance (SLSA), signed by the pipeline. A package that was published here has the bundle of its
provenance beside the tarball.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.paths import BUNDLE_ROLE
from pkgrepo.repositories.attestations import AttestedFile, Attests, Claim, attested_by
from pkgrepo.sigstore.bundles import check_size, read_bundle
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.sigstore.verification import verify
from pkgrepo.storage.catalog.file_facts import Attested
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.text import quoted

PROVENANCE: Final = "https://slsa.dev/provenance/"  # what the predicate types of provenance begin with
_PURL: Final = "pkg:npm/"


class _Attestation(msgspec.Struct, rename="camel"):
    predicate_type: str
    bundle: msgspec.Raw


class _Document(msgspec.Struct):
    attestations: Annotated[list[_Attestation], msgspec.Meta(max_length=20)] | msgspec.UnsetType = msgspec.UNSET


def claim(meta: Mapping[str, Any], _paths: Sequence[str] = ()) -> Claim:
    """What a manifest claims: the fields that pnpm reads."""
    user, dist = meta.get("_npmUser"), meta.get("dist")
    user = user if isinstance(user, dict) else {}
    found = dist.get("attestations") if isinstance(dist, dict) else None
    return Claim.of(
        provenance=isinstance(found, dict) and bool(found.get("provenance")),
        pipeline=bool(user.get("trustedPublisher")),
        approved=bool(user.get("approver")),
    )


def verify_provenance(document: bytes, file: AttestedFile, root: TrustedRoot) -> Attested:
    """
    The verified provenance of a tarball, in a document of a registry or in its bundle.

    Blocks for some milliseconds. :raises Invalid: there is none, or one that is not verified
    """
    check_size(document)
    found = decode_as(document, _Document, what="the document of attestations").attestations
    bundles = [document]
    if not isinstance(found, msgspec.UnsetType):
        bundles = [bytes(each.bundle) for each in found if each.predicate_type.startswith(PROVENANCE)]
    if len(bundles) != 1:
        raise Invalid(f"there are {len(bundles)} statements of provenance instead of one")
    told = verify(read_bundle(bundles[0]), root, file.digests, lambda name: _is_named(name, file))
    if not told.predicate_type.startswith(PROVENANCE):
        raise Invalid("the statement is not about provenance")
    signed = attested_by(told, root)
    if not signed.repository:
        raise Invalid(f"it is signed by {quoted(signed.signer)}, and not by a pipeline whose source is known")
    return signed


def _is_named(subject: str, file: AttestedFile) -> bool:
    """Whether the package URL of a subject is that of a version; npm encodes the "@" of a scope and nothing else."""
    package, _, spelled = subject.removeprefix(_PURL).rpartition("@")
    version = semver.find_version(file.version)
    named = subject.startswith(_PURL) and package == file.package.replace("@", "%40")
    return named and version is not None and semver.is_same(spelled, version)


ATTESTS: Final = Attests(claim=claim, suffix=BUNDLE_ROLE, verify=verify_provenance)
