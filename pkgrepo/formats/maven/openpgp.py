"""
OpenPGP: certificates that a repository trusts, and detached signatures by them (RFC 9580).

The library takes 2 MB of memory, and is imported when the first key or signature is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pkgrepo.errors import Invalid

if TYPE_CHECKING:
    from pysequoia import Cert

LONGEST_KEY: Final = 64 * 1024  # characters of one armoured text; keys with many certifications have some ten KiB


MOST_KEYS: Final = 100


LARGEST_SIGNATURE: Final = 64 * 1024  # bytes; usual ones have one KiB


def read_certificates(texts: Sequence[str]) -> list[Cert]:
    """
    The certificates (public keys) in armoured texts, each of which may have several.

    :raises Invalid: one is malformed, or a secret key, or they are too many
    """
    from pysequoia import Cert  # noqa: PLC0415 - see above

    found: list[Cert] = []
    for number, text in enumerate(texts):
        pointer = f"/deploy/trusted_keys/{number}"
        if len(text) > LONGEST_KEY:
            raise Invalid(f"a key has more than {LONGEST_KEY} characters", pointer)
        if "PRIVATE KEY" in text:
            raise Invalid("this is a private key; export the public one", pointer)
        try:
            certificates = Cert.split_bytes(text.encode())
        except Exception:  # noqa: BLE001 - the library has no errors of its own; theirs have a backtrace as text
            certificates = []
        if not certificates:
            raise Invalid("this is no armoured OpenPGP public key", pointer)
        found += certificates
    if len(found) > MOST_KEYS:
        raise Invalid(f"there are more than {MOST_KEYS} keys", "/deploy/trusted_keys")
    return found


def is_signed_by(content: int | bytes, signature: bytes, certificates: Sequence[Cert]) -> bool:
    """
    Whether a detached signature is valid for a file, given as a descriptor or bytes, and by one of the certificates.

    Blocks for as long as reading the file takes, without the GIL: call it in a thread.
    """
    from pysequoia import Sig, verify  # noqa: PLC0415 - see above

    try:
        signed = Sig.from_bytes(signature)
        if isinstance(content, bytes):
            verify(bytes=content, store=lambda _: list(certificates), signature=signed)
        else:
            verify(file=f"/dev/fd/{content}", store=lambda _: list(certificates), signature=signed)
    except Exception:  # noqa: BLE001 - as above: any failure means that it is not valid
        return False
    return True
