"""
Compares the signer of an attestation with the pipeline that publishes it.

The certificate of a signer names its pipeline in extensions (Fulcio, "Sigstore OID information"), which come from an
identity token like that which the pipeline exchanged here. So both must name the same source:

=====================  ========================  ===========================================================
extension              in older certificates     claims of the identity token
=====================  ========================  ===========================================================
8, issuer              1                         ``iss``
12, source repository  5                         ``repository``, ``project_path``: the end of the address
13, commit             3                         ``sha``
15, its number                                   ``repository_id``, ``project_id``
18, pipeline                                     ``workflow_ref``, ``ci_config_ref_uri``: all before the ``@``
=====================  ========================  ===========================================================

What either does not name is not compared, except the issuer. Whether an authority issued the certificate is
verified where that is asked for (L{pkgrepo.sigstore}): here the pipeline has just proved who it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.model import Pipeline
from pkgrepo.sigstore.bundles import STATEMENT
from pkgrepo.sigstore.certificates import Signer, read_signer
from pkgrepo.untrusted.public_keys import encode_dsse
from pkgrepo.untrusted.text import quoted

# Claims of identity tokens that tokens of this server keep to compare them.
COMPARED: Final = (
    "iss",
    "repository",
    "repository_id",
    "project_path",
    "project_id",
    "workflow_ref",
    "ci_config_ref_uri",
    "sha",
    "environment",
)
_KINDS: Final = {"repository": "GitHub", "project_path": "GitLab"}  # PEP 740 leaves the names to indexes


@frozen
class Signed:
    """A signed statement: the DER of the signer's certificate, the payload with its type, and the signature."""

    certificate: bytes
    payload: bytes
    signature: bytes
    payload_type: str = STATEMENT


def check_signer(pipeline: Pipeline, signed: Signed, what: str, pointer: str) -> None:
    """
    Check that the pipeline that publishes has signed a statement; ``what`` names the attestation in sentences.

    :raises Invalid: another one has, or the signature is not that of the certificate
    """
    try:
        signer = read_signer(signed.certificate)
    except ValueError:
        raise Invalid(f"the certificate of {what} cannot be read", pointer) from None
    if not signer.key.has_signed(signed.signature, encode_dsse(signed.payload_type, signed.payload)):
        raise Invalid(f"the signature of {what} is not that of its certificate", pointer)
    check_names(pipeline, signer, what, pointer)


def check_names(pipeline: Pipeline, signer: Signer, what: str, pointer: str) -> None:
    """Check that the certificate of a signer names the pipeline that publishes. :raises Invalid: it does not"""
    for subject, theirs, ours in _compared(signer.named, pipeline.claims):
        if theirs != ours:
            raise Invalid(
                f"{what} is of another pipeline than the one that publishes: its certificate names the {subject} "
                f"{quoted(theirs)}, and the identity token {quoted(ours)}",
                pointer,
            )


def publisher_of(pipeline: Pipeline) -> Mapping[str, str | None]:
    """The pipeline as the publisher of a provenance document (PEP 740)."""
    claims = pipeline.claims
    source = next((each for each in _KINDS if each in claims), None)
    definition = claims.get("workflow_ref") or claims.get("ci_config_ref_uri") or ""
    return {
        "kind": pipeline.issuer if source is None else _KINDS[source],
        "repository": claims.get(source or ""),
        "workflow": definition.partition("@")[0].rpartition("/")[2] or None,
        "environment": claims.get("environment"),
        "claims": None,
    }


def _compared(named: Mapping[int, str], claims: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What both name: the word for it, the text of the certificate, and that of the identity token."""
    issuer = claims.get("iss", "")
    found = [("issuer", named.get(8) or named.get(1, ""), issuer)]
    source = claims.get("repository") or claims.get("project_path")
    if source:  # a certificate that names none is not of this pipeline
        found.append(("repository", _place(named.get(12) or named.get(5, ""), source, issuer), source))
    number = claims.get("repository_id") or claims.get("project_id")
    if number and named.get(15):
        found.append(("repository with the number", named[15], number))
    commit = claims.get("sha")
    theirs = named.get(13) or named.get(3)
    if commit and theirs:
        found.append(("commit", theirs.lower(), commit.lower()))
    definition = claims.get("workflow_ref") or claims.get("ci_config_ref_uri")
    if definition and named.get(18):
        ours = definition.partition("@")[0]
        found.append(("pipeline", _place(named[18].partition("@")[0], ours, issuer), ours))
    return found


def _place(address: str, source: str, issuer: str) -> str:
    """The source that an address is of, at a host or below a forge that is not at its root; else the whole address."""
    rest = address.partition("://")[2]
    path, below = rest.partition("/")[2], issuer.partition("://")[2].partition("/")[2]
    return source if source in (rest, path, path.removeprefix(f"{below}/")) else address
