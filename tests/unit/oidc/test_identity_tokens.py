from __future__ import annotations

import base64
import json
import re

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pkgrepo.errors import IdentityRefused, Invalid
from pkgrepo.oidc.identity_tokens import LONGEST_S, SKEW_S, parse, read_keys, verify

NOW = 1_800_000_000
CLAIMS = {
    "iss": "https://forge.example",
    "aud": "packages",
    "sub": "repo:acme/widget",
    "exp": NOW + 300,
    "iat": NOW,
    "jti": "1",
}
RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def jwk(key, algorithm, **more):
    public = getattr(jwt.algorithms, algorithm).to_jwk(key.public_key(), as_dict=True)
    return {**public, **more}


DOCUMENT = json.dumps(
    {
        "keys": [
            jwk(RSA, "RSAAlgorithm", kid="rsa", use="sig"),
            jwk(EC, "ECAlgorithm", kid="ec", alg="ES256"),
            jwk(EDWARDS, "OKPAlgorithm", kid="ed"),
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
            {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
            jwk(OTHER, "RSAAlgorithm", kid="cipher", use="enc"),
        ]
    }
).encode()
KEYS = read_keys(DOCUMENT)


def token(key=RSA, algorithm="RS256", headers=None, **changes):
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": "rsa"} if headers is None else headers)


def check(text, now=NOW, audience=("packages",)):
    return verify(parse(text), KEYS, audience, now)


def packed(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_only_usable_public_keys_for_signatures_are_read():
    assert {each.kid for each in KEYS} == {"rsa", "ec", "ed"}
    short = rsa.generate_private_key(65537, 1024)  # RFC 7518 section 3.3 wants 2048 bits
    assert read_keys(json.dumps({"keys": [jwk(short, "RSAAlgorithm", kid="short")]}).encode()) == []
    assert read_keys(json.dumps({"keys": [jwk(RSA, "RSAAlgorithm", alg="ES256")]}).encode()) == []
    for document in (b"[]", b"{}", b'{"keys": 1}', b"<html>"):
        with pytest.raises(Invalid):
            read_keys(document)


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(RSA, "RS256", "rsa"), (RSA, "PS384", "rsa"), (EC, "ES256", "ec"), (EDWARDS, "EdDSA", "ed")],
)
def test_a_token_is_verified_with_the_key_that_it_names(key, algorithm, kid):
    found = check(token(key, algorithm, {"kid": kid}))
    assert (found.issuer, found.subject, found.expires_at) == (CLAIMS["iss"], CLAIMS["sub"], CLAIMS["exp"])
    assert check(token(key, algorithm, {})).subject == CLAIMS["sub"], "without a key id every key is tried"


PUBLIC_PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def with_public_key_as_secret():
    """HS256 with the public key as the secret, which some libraries accept."""
    head = f"{packed({'alg': 'HS256', 'kid': 'rsa'})}.{packed(CLAIMS)}"
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = base64.urlsafe_b64encode(algorithm.sign(head.encode(), PUBLIC_PEM)).rstrip(b"=").decode()
    return f"{head}.{signature}"


def swapped():
    """The claims of one token with the signature of another."""
    head, _, signature = token().split(".")
    return f"{head}.{packed({**CLAIMS, 'sub': 'repo:evil/widget'})}.{signature}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        "x" * 20_000,
        f"{packed([])}.{packed(CLAIMS)}.x",
        f"{packed({'alg': 'none'})}.{packed(CLAIMS)}.",
        f"{packed({'alg': 'none', 'kid': 'rsa'})}.{packed(CLAIMS)}.c2ln",
        f"{packed({'alg': 'RS256', 'kid': {}})}.{packed(CLAIMS)}.c2ln",
        f"{packed({'alg': 'RS256', 'kid': '../../keys'})}.{packed(CLAIMS)}.c2ln",
        with_public_key_as_secret(),
        jwt.encode(CLAIMS, "secret" * 8, "HS256", headers={"kid": "shared"}),
        swapped(),
        token(OTHER),
        token(OTHER, headers={"kid": "cipher"}),
        token(OTHER, headers={"kid": "new", "jwk": jwk(OTHER, "RSAAlgorithm"), "jku": "https://evil.example/keys"}),
        token(EC, "ES256"),  # with the id of another key
        token(headers={"kid": "rsa", "typ": "at+jwt"}),
        token(headers={"kid": "rsa", "typ": "logout+jwt"}),
        token(headers={"kid": "rsa", "crit": ["b64"]}),
        token(aud="other"),
        token(aud=["other", "packages.evil.example"]),
        token(aud=None),
        token(sub=None),
        token(sub=""),
        token(exp=None),
        token(iat=None),
        token(exp=NOW - SKEW_S),
        token(iat=NOW + SKEW_S + 1),
        token(nbf=NOW + SKEW_S + 1),
        token(exp=NOW + LONGEST_S + 1),
        token(exp="9999999999"),
        token(exp=True),
        token(exp=float("nan")),
        token(exp=1e400),
    ],
)
def test_what_is_not_valid_is_refused(text):
    with pytest.raises(IdentityRefused):
        check(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (with_public_key_as_secret(), "signed with 'HS256', which is not accepted here"),
        (token(OTHER), "no key of the issuer has signed"),
        (swapped(), "no key of the issuer has signed"),
    ],
)
def test_the_reason_of_a_refusal_is_that_of_the_signature(text, reason):
    with pytest.raises(IdentityRefused, match=reason):
        check(text)


def test_clocks_may_differ_by_a_minute():
    check(token(exp=NOW - SKEW_S + 1))
    check(token(iat=NOW + SKEW_S, nbf=NOW + SKEW_S))


def test_the_digest_belongs_to_the_token_and_not_to_its_text():
    first = check(token())
    assert first.digest == check(token(iat=NOW - 1)).digest, "jti tells that it is the same"
    assert first.digest != check(token(jti="2")).digest
    text = token(EC, "ES256", {"kid": "ec"}, jti=None)
    head, _, signature = text.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    s = (ORDER - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")  # the other valid signature
    malleable = f"{head}.{base64.urlsafe_b64encode(raw[:32] + s).rstrip(b'=').decode()}"
    assert malleable != text
    assert check(malleable).digest == check(text).digest


def test_a_refusal_names_what_the_token_claims():
    with pytest.raises(IdentityRefused, match=re.escape("its audience is 'sigstore'")):
        check(token(aud="sigstore"))
