"""
The provenance of a distribution: the document of its attestations (PEP 740), and the pipeline that signed them.

A page that names such a document claims that there is one. The index that took the attestations says who published; of
a publisher that it names, the certificate must name the same source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import PROVENANCE
from pkgrepo.formats.python.upload.provenance import same_name
from pkgrepo.repositories.attestations import AttestedFile, Attests, Claim, attested_by
from pkgrepo.sigstore.bundles import check_size, read_attestation
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.sigstore.verification import verify
from pkgrepo.storage.catalog.file_facts import Attested
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.text import quoted


class _Bundle(msgspec.Struct):
    attestations: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=20)]
    publisher: dict[str, Any] = {}


class _Document(msgspec.Struct):
    attestation_bundles: Annotated[list[_Bundle], msgspec.Meta(max_length=20)]


def claim(_meta: Mapping[str, Any], paths: Sequence[str]) -> Claim:
    """What is claimed of a file, by the paths of those beside it."""
    return Claim.of(provenance=any(each.endswith(PROVENANCE) for each in paths))


def verify_provenance(document: bytes, file: AttestedFile, root: TrustedRoot) -> Attested:
    """
    The verified provenance of a distribution, in the document of its attestations; that of the first one.

    All have to be verified. Blocks for some milliseconds. :raises Invalid: there is none, or one is not verified
    """
    check_size(document)
    bundles = decode_as(document, _Document, what="the document of attestations").attestation_bundles
    name = file.path.rpartition("/")[2]
    found = [_verified(bundle, bytes(each), file, name, root) for bundle in bundles for each in bundle.attestations]
    if not found:
        raise Invalid("it has no attestation")
    return found[0]


def _verified(bundle: _Bundle, attestation: bytes, file: AttestedFile, name: str, root: TrustedRoot) -> Attested:
    told = verify(read_attestation(attestation), root, file.digests, lambda subject: _is_name(subject, name))
    found = attested_by(told, root)
    stated = bundle.publisher.get("repository")
    if isinstance(stated, str) and stated and not found.repository.casefold().endswith(f"/{stated}".casefold()):
        raise Invalid(f"the index names the source {quoted(stated)}, and the certificate {quoted(found.repository)}")
    return found


def _is_name(subject: str, name: str) -> bool:
    try:
        return same_name(subject, name)
    except Invalid:
        return False


ATTESTS: Final = Attests(claim=claim, suffix=PROVENANCE, verify=verify_provenance)
