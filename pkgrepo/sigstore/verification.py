"""
The verification of what is signed: who signed it, and what it is about.

===========  =======================================================================================================
step         what is checked
===========  =======================================================================================================
log          a trusted log has this signature by this certificate, and says when it came
certificate  a trusted authority had issued it then, for signing code, and a certificate log has it
signature    the key of the certificate signed the payload (DSSE), or the bytes of the file
statement    it is an in-toto statement about the file, by its name and its digest, or by that alone
===========  =======================================================================================================

What fails in any step is not verified. Whether a signer is one that may publish the package is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from attrs import frozen
from msgspec import Meta

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.public_keys import encode_dsse
from pkgrepo.untrusted.strict_json import check_value_count, decode_as
from pkgrepo.untrusted.text import quoted

from .bundles import MOST_VALUES, STATEMENT, Bundle
from .certificates import Signer, check_issued, read_signer
from .roots import TrustedRoot
from .transparency import check_logged

STATEMENTS: Final = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
MOST_SUBJECTS: Final = 1000


class Subject(msgspec.Struct, frozen=True):
    """A file that a statement is about: its name, and its digests (hex) by algorithm."""

    name: str
    digest: dict[str, str]


class _Statement(msgspec.Struct):
    kind: str = msgspec.field(name="_type")
    subject: Annotated[list[Subject], Meta(max_length=MOST_SUBJECTS)]
    predicate_type: str = msgspec.field(name="predicateType")


@frozen(kw_only=True)
class Verified:
    """
    A statement that is verified: ``predicate_type`` is what kind it is, ``signer`` who signed it.

    A signature over the bytes of a file says nothing more: its ``predicate_type`` is empty.
    """

    signer: Signer
    predicate_type: str


def verify(
    bundle: Bundle, root: TrustedRoot, digests: Mapping[str, str], is_name: Callable[[str], bool] | None
) -> Verified:
    """
    Verify a statement about a file with these digests (hex, by algorithm); ``is_name`` says what the file is called.

    Without that the digest of any subject has to be that of the file. A bundle with a signature over the bytes of a
    file in place of a statement names no file, either. Blocks for about 2 ms.

    :raises Invalid: it is not verified; the message says why
    """
    try:
        signer = read_signer(bundle.certificate)
    except ValueError:
        raise Invalid("the certificate of the signer cannot be read") from None
    message = bytes.fromhex(digests["sha256"]) if bundle.is_message else b""
    at = check_logged(bundle, signer.certificate, root, message)
    check_issued(signer, root, at)
    if bundle.is_message:
        if not signer.key.has_signed_digest(bundle.signature, message):
            raise Invalid("the signature is not that of the certificate over these bytes")
        return Verified(signer=signer, predicate_type="")
    if bundle.payload_type != STATEMENT:
        raise Invalid(f"what is signed is no statement, but {quoted(bundle.payload_type)}")
    if not signer.key.has_signed(bundle.signature, encode_dsse(bundle.payload_type, bundle.payload)):
        raise Invalid("the signature is not that of the certificate")
    check_value_count(bundle.payload, MOST_VALUES, "the statement")
    statement = decode_as(bundle.payload, _Statement, what="the statement")
    if statement.kind not in STATEMENTS:
        raise Invalid(f"the statement is of a kind that is not known: {quoted(statement.kind)}")
    _check_subjects(statement.subject, digests, is_name)
    return Verified(signer=signer, predicate_type=statement.predicate_type)


def _check_subjects(
    subjects: Sequence[Subject], digests: Mapping[str, str], is_name: Callable[[str], bool] | None
) -> None:
    if is_name is None:
        if not any(each.digest.get("sha256", "").lower() == digests.get("sha256", "-").lower() for each in subjects):
            raise Invalid("the statement is about a file with other bytes")
        return
    named = [each for each in subjects if is_name(each.name)]
    if len(named) != 1:
        others = quoted(subjects[0].name) if subjects else "nothing"
        raise Invalid(f"the statement is about {others}" if not named else "the statement names the file twice")
    theirs = named[0].digest
    common = [each for each in ("sha512", "sha256") if each in digests and each in theirs]
    if not common:
        raise Invalid("the statement has no digest of a kind that is known of the file")
    if any(theirs[each].lower() != digests[each].lower() for each in common):
        raise Invalid("the statement is about a file with other bytes")
