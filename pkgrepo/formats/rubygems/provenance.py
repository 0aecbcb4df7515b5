"""
The provenance of a gem: its attestations, which are Sigstore bundles, and the pipeline that signed them.

An attestation is a signature over the bytes of the gem, as ``sigstore-cli`` makes it, or an in-toto statement with the
digest of the gem. Gem servers have those of a version in one document, a list, and no index tells which versions have
any: ``gem push --attestation`` sends them with the gem since RubyGems 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.names import full_name
from pkgrepo.formats.rubygems.paths import ATTESTATIONS
from pkgrepo.model import Pipeline
from pkgrepo.oidc.provenance import check_names
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.parts.values import Context, Normalised
from pkgrepo.repositories.attestations import AttestedFile, Attests, Claim, attested_by
from pkgrepo.sigstore.bundles import check_size, read_bundle
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.sigstore.verification import Verified, verify
from pkgrepo.storage.catalog.file_facts import Attested
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.text import quoted

MOST: Final = 16  # attestations of a gem; tools make one
# Gem servers take attestations since October 2024: nothing older has any.
FIRST: Final = datetime(2024, 10, 1, tzinfo=UTC)
NORMALISER: Final = f"{__name__}:keep_attestations"

_BODY: Final = "body"  # in ``top``: the document, empty if it lists nothing
_List = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MOST)]


def claim(_meta: Mapping[str, Any], paths: Sequence[str]) -> Claim:
    """What is claimed of a gem, by the paths of the files beside it."""
    return Claim.of(provenance=any(each.endswith(ATTESTATIONS) for each in paths))


def read_bundles(document: bytes) -> Sequence[bytes]:
    """The bundles in a document of attestations. :raises Invalid: it is none, or too long"""
    check_size(document)
    return [bytes(each) for each in decode_as(document, _List, what="the list of attestations")]


def verify_provenance(document: bytes, file: AttestedFile, root: TrustedRoot) -> Attested:
    """
    The verified provenance of a gem, in the document of its attestations; that of the first one.

    All have to be verified. Blocks for some milliseconds. :raises Invalid: there is none, or one is not verified
    """
    found = [attested_by(_verified(each, file.digests, root), root) for each in read_bundles(document)]
    if not found:
        raise Invalid("it has no attestation")
    unnamed = next((each for each in found if not each.repository), None)
    if unnamed is not None:
        raise Invalid(f"it is signed by {quoted(unnamed.signer)}, and not by a pipeline whose source is known")
    return found[0]


def check_pushed(document: bytes, sha256: str, root: TrustedRoot, pipeline: Pipeline | None) -> None:
    """
    Check that all attestations of a gem that is pushed are verified, and of the ``pipeline`` that pushes it, if any.

    Blocks for some milliseconds. :raises Invalid: one is not
    """
    for each in read_bundles(document):
        signer = _verified(each, {"sha256": sha256}, root).signer
        if pipeline is not None:
            check_names(pipeline, signer, "the attestation", "")


def _verified(bundle: bytes, digests: Mapping[str, str], root: TrustedRoot) -> Verified:
    if "sha256" not in digests:
        raise Invalid("the server does not tell the SHA-256 digest of the gem")
    return verify(read_bundle(bundle, messages=True), root, digests, None)


def attestations_question(name: str, version: str) -> DocumentRequest:
    """The attestations of a version, by its text with the platform."""
    full = full_name(name, version)
    return DocumentRequest(
        key=f"attestations/{full}",
        package_key=name,
        name=full,
        urls=lambda url: (f"{url}/api/v1/attestations/{quote(full)}.json",),
        accept="application/json",
        normaliser=NORMALISER,
        kind="attestations",
    )


def keep_attestations(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The document of the attestations of a version. :raises Invalid: it is no list of at most ``MOST`` bundles"""
    try:
        text = source.decode() if read_bundles(source) else ""
    except UnicodeDecodeError:  # in a bundle, which the reader of the list passes over
        raise Invalid("the list of attestations is not UTF-8") from None
    return Normalised(top={_BODY: text}, entries=iter(()))


def kept_attestations(top: Mapping[str, Any]) -> bytes:
    """The document in the top of its parts; empty if it lists nothing."""
    text: str = top[_BODY]
    return text.encode()


ATTESTS: Final = Attests(
    claim=claim,
    suffix=ATTESTATIONS,
    verify=verify_provenance,
    unsaid_from_ms=round(FIRST.timestamp() * 1000),
)
