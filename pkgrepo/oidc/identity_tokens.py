"""
Identity tokens: signed JWTs (RFC 7519) of an OpenID Connect issuer, and the keys that verify them (RFC 7517).

Nothing that a token says selects how it is verified (RFC 8725): its key comes from the issuer's own documents, and the
key decides which algorithms are possible. Key addresses and embedded keys in the header (``jku``, ``x5u``, ``jwk``) are
ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jwt
import msgspec
from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.utils import base64url_decode

from pkgrepo.errors import IdentityRefused, Invalid
from pkgrepo.untrusted.strict_json import decode_json

MOST_CHARACTERS: Final = 16 * 1024  # of a token; those of forges have up to 3,000
MOST_KEYS: Final = 64  # of an issuer that are read; the largest have about ten
SKEW_S: Final = 60  # seconds of clock difference to the issuer
LONGEST_S: Final = 86_400  # seconds that a token may still be valid; forges issue them for an hour at most
UNTIMED_S: Final = 120  # seconds that a token without an expiry is valid
RSA_BITS: Final = range(2048, 8193)  # RFC 7518 section 3.3; verifying with longer ones takes milliseconds

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_EC: Final = {"secp256r1": frozenset({"ES256"}), "secp384r1": frozenset({"ES384"}), "secp521r1": frozenset({"ES512"})}
_EDWARDS: Final = frozenset({"EdDSA"})
_KNOWN: Final = _RSA.union(_EDWARDS, *_EC.values())
IDENTITY: Final = ("", "jwt")  # an access token (at+jwt) or a logout token (logout+jwt) is no identity token
NEEDED: Final = ("sub", "exp")  # claims of an identity token, beside iss, aud and iat
_TEXT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


@frozen
class VerificationKey:
    """A public key of an issuer, its id (empty: it has none) and the algorithms that it may be used with."""

    kid: str
    algorithms: frozenset[str]
    key: Any = field(repr=False, eq=False)


@frozen
class Unverified:
    """What a token says before it is verified: enough to find the key."""

    text: str = field(repr=False)
    kid: str
    algorithm: str
    issuer: str


@frozen
class IdentityToken:
    """The claims of a verified token; ``digest`` is the same for each copy of it, and for no other token."""

    issuer: str
    subject: str
    expires_at: int  # seconds since the epoch
    claims: Mapping[str, Any]
    digest: bytes


def read_keys(document: bytes) -> list[VerificationKey]:
    """
    The keys for signatures in a JWK set; keys of other kinds, and those that are not usable, are left out.

    :raises Invalid: it is no JWK set
    """
    value = decode_json(document)
    keys = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(keys, list):
        raise Invalid("its keys are no JWK set")
    found = (_read_key(each) for each in keys[:MOST_KEYS] if isinstance(each, dict))
    return [each for each in found if each is not None]


def _read_key(jwk: Mapping[str, Any]) -> VerificationKey | None:
    kid, use = jwk.get("kid", ""), jwk.get("use", "sig")
    if jwk.get("kty") not in ("RSA", "EC", "OKP") or use != "sig" or not isinstance(kid, str):
        return None
    public = {name: value for name, value in jwk.items() if name in ("kty", "crv", "n", "e", "x", "y")}
    try:
        key = jwt.PyJWK(public).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    possible = _algorithms_of(key)
    only = jwk.get("alg")
    algorithms = possible if only is None else possible & {only} if isinstance(only, str) else frozenset[str]()
    return VerificationKey(kid, algorithms, key) if algorithms else None


def _algorithms_of(key: object) -> frozenset[str]:
    if isinstance(key, RSAPublicKey):
        small = key.public_numbers().e.bit_length() <= 33  # larger exponents only cost time
        return _RSA if key.key_size in RSA_BITS and small else frozenset()
    if isinstance(key, EllipticCurvePublicKey):
        return _EC.get(key.curve.name, frozenset())
    return _EDWARDS if isinstance(key, Ed25519PublicKey) else frozenset()


def parse(text: str, kinds: Sequence[str] = IDENTITY) -> Unverified:
    """
    Find the issuer and the key id that a token names. ``kinds`` are the possible values of ``typ``.

    :raises IdentityRefused: it is no signed JWT, or of another kind
    """
    if len(text) > MOST_CHARACTERS:
        raise IdentityRefused(f"an identity token has at most {MOST_CHARACTERS} characters")
    if not _TEXT.fullmatch(text):
        raise IdentityRefused("this is no identity token: it has no header, claims and signature")
    try:
        header, claims = (decode_json(base64url_decode(part.encode())) for part in text.split(".")[:2])
    except (Invalid, ValueError):
        raise IdentityRefused("this is no identity token: its header or claims cannot be read") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise IdentityRefused("this is no identity token: its header or claims are no object")
    kid, algorithm, type_ = (header.get(name, "") for name in ("kid", "alg", "typ"))
    issuer = claims.get("iss", "")
    if not all(isinstance(each, str) for each in (kid, algorithm, type_, issuer)):
        raise IdentityRefused("this is no identity token: kid, alg, typ and iss are texts")
    if "crit" in header:  # RFC 7515 section 4.1.11; PyJWT before 2.12 does not look at it
        raise IdentityRefused("the identity token demands an extension that this server does not know")
    if type_.lower() not in kinds:
        raise IdentityRefused("this is a token of another kind than an identity token")
    return Unverified(text, kid, algorithm, issuer)


def matching(keys: Sequence[VerificationKey], token: Unverified) -> list[VerificationKey]:
    """The keys that may have signed a token: that of its key id, or without one all of the right kind."""
    return [each for each in keys if (not token.kid or each.kid == token.kid) and token.algorithm in each.algorithms]


def verify(
    token: Unverified,
    keys: Sequence[VerificationKey],
    audience: Sequence[str],
    now_s: float,
    needed: Sequence[str] = NEEDED,
) -> IdentityToken:
    """
    Check signature, audience and times of a token, and that it has the ``needed`` claims.

    The caller has chosen the keys by its issuer. A token without the claim ``exp`` is valid for some minutes.

    :raises IdentityRefused: it is not valid
    """
    for key in matching(keys, token):
        try:
            claims = jwt.decode(
                token.text,
                key.key,
                algorithms=sorted(key.algorithms),
                audience=list(audience),
                issuer=token.issuer,
                # times are checked below, with our clock
                options={
                    "require": ["iss", "aud", "iat", *needed],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidSignatureError:
            continue
        except jwt.InvalidAudienceError:
            raise IdentityRefused(f"the identity token is not for this server: {_audience(token)}") from None
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise IdentityRefused(f"the identity token is not valid: {error}") from None
        _check_times(claims, now_s)
        return _verified(token, claims)
    if token.algorithm not in _KNOWN:
        raise IdentityRefused(f"the identity token is signed with {token.algorithm[:20]!r}, which is not accepted here")
    raise IdentityRefused("no key of the issuer has signed the identity token")


def _audience(token: Unverified) -> str:
    claims = msgspec.json.decode(base64url_decode(token.text.split(".")[1].encode()))
    return f"its audience is {str(claims.get('aud'))[:200]!r}"


def _check_times(claims: Mapping[str, Any], now_s: float) -> None:
    times = [_expiry(claims), claims["iat"], claims.get("nbf", claims["iat"])]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in times):
        raise IdentityRefused("the times of the identity token are no numbers")
    expires, issued, begins = times
    if not expires + SKEW_S > now_s:
        raise IdentityRefused("the identity token has expired")
    if not max(issued, begins) - SKEW_S <= now_s:
        raise IdentityRefused("the identity token is not valid yet: is the clock of this server right?")
    if not expires - now_s <= LONGEST_S:
        raise IdentityRefused("the identity token is valid for more than a day")


def _expiry(claims: Mapping[str, Any]) -> Any:
    """When a token expires; one that does not say it is used at once."""
    issued = claims["iat"]
    return claims.get("exp", issued + UNTIMED_S if isinstance(issued, int) else None)


def _verified(token: Unverified, claims: Mapping[str, Any]) -> IdentityToken:
    subject, jti = claims.get("sub", ""), claims.get("jti")
    if not isinstance(subject, str) or ("sub" in claims and not subject):
        raise IdentityRefused("the claim sub of the identity token is no text, or is empty")
    # An ECDSA signature can be changed into another valid one, so without jti the signed part identifies the token.
    unique = jti if isinstance(jti, str) and jti else token.text.rpartition(".")[0]
    digest = hashlib.sha256(f"{token.issuer}\0{unique}".encode()).digest()
    return IdentityToken(token.issuer, subject, int(_expiry(claims)), claims, digest)
