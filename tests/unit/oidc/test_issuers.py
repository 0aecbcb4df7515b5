from __future__ import annotations

import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Clock

from pkgrepo.errors import IdentityRefused, IssuerUnavailable
from pkgrepo.oidc.documents import Document
from pkgrepo.oidc.issuers import COOL_S, FRESH_S, KEPT_S, ROTATION_S, Issuer, Issuers

URL = "https://forge.example/actions"
NOW = 1_800_000_000
OLD, NEW = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


class Forge:
    """The documents of an issuer, as it would serve them."""

    def __init__(self):
        self.metadata = {"issuer": URL, "jwks_uri": "https://keys.example/set"}
        self.keys = {"old": OLD}
        self.asked = []
        self.status = 200
        self.held = None

    async def get(self, name, url):
        self.asked.append(url)
        if self.held is not None:
            await self.held
        if self.status is None:
            raise IssuerUnavailable(name, "it refuses connections")
        algorithm = jwt.algorithms.ECAlgorithm
        keys = [{**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid} for kid, key in self.keys.items()]
        value = {"keys": keys} if url.startswith("https://keys.example") else self.metadata
        return Document(self.status, json.dumps(value).encode())


@pytest.fixture
def forge():
    return Forge()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def issuers(forge, clock):
    return Issuers([Issuer("forge", URL, ["packages"], forge, clock)], lambda: NOW + clock.seconds())


def token(key=OLD, kid="old", **changes):
    claims = {"iss": URL, "aud": "packages", "sub": "x", "exp": NOW + 80_000, "iat": NOW, **changes}
    return jwt.encode(claims, key, "ES256", headers={"kid": kid})


def result(coroutine):
    found = []
    Deferred.fromCoroutine(coroutine).addBoth(found.append)
    if not found:
        return None
    if hasattr(found[0], "raiseException"):
        found[0].raiseException()
    return found[0]


def test_documents_are_fetched_once_and_again_when_they_are_old(issuers, forge, clock):
    assert result(issuers.verify(token()))[0].name == "forge"
    result(issuers.verify(token()))
    assert forge.asked == [f"{URL}/.well-known/openid-configuration", "https://keys.example/set"]
    clock.advance(FRESH_S)
    result(issuers.verify(token()))
    assert len(forge.asked) == 4


def test_a_rotated_key_is_found_and_unknown_keys_are_asked_for_seldom(issuers, forge, clock):
    result(issuers.verify(token()))
    forge.keys = {"new": NEW}
    with pytest.raises(IdentityRefused):
        result(issuers.verify(token(NEW, "new")))
    assert len(forge.asked) == 2, "they were fetched just now"
    clock.advance(ROTATION_S)
    assert result(issuers.verify(token(NEW, "new")))[0].name == "forge"
    with pytest.raises(IdentityRefused):
        result(issuers.verify(token()))
    for _ in range(100):
        with pytest.raises(IdentityRefused):
            result(issuers.verify(token(NEW, "guessed")))
    assert len(forge.asked) == 4


def test_callers_share_one_request_and_its_failure(issuers, forge, clock):
    forge.held = Deferred()
    waiting = [Deferred.fromCoroutine(issuers.verify(token())) for _ in range(1000)]
    assert len(forge.asked) == 1
    forge.status = None
    forge.held.callback(None)
    failed = gatherResults([each.addErrback(lambda failure: failure.check(IssuerUnavailable)) for each in waiting])
    assert result(_await(failed)) == [IssuerUnavailable] * 1000
    with pytest.raises(IssuerUnavailable, match="refuses connections"):
        result(issuers.verify(token()))
    assert len(forge.asked) == 1, "it is left alone after a failure"
    clock.advance(COOL_S)
    forge.status = 200
    assert result(issuers.verify(token()))[0].name == "forge"


async def _await(deferred):
    return await deferred


def test_kept_keys_are_used_for_a_day_while_the_issuer_is_away(issuers, forge, clock):
    result(issuers.verify(token()))
    forge.status = 503
    clock.advance(FRESH_S)
    assert result(issuers.verify(token()))[0].name == "forge"
    clock.advance(KEPT_S - FRESH_S)
    with pytest.raises(IssuerUnavailable, match="answers 503"):
        result(issuers.verify(token(exp=NOW + KEPT_S + 300)))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://evil.example", "jwks_uri": "https://keys.example/set"}, "names another issuer"),
        ({"issuer": URL}, "names an address that cannot be used"),
        ({"issuer": URL, "jwks_uri": "file:///etc/passwd"}, "names an address that cannot be used"),
        ({"issuer": URL, "jwks_uri": "http://keys.example/set"}, "without TLS"),
        ([], "no JSON object"),
    ],
)
def test_a_configuration_that_cannot_be_trusted_is_refused(issuers, forge, metadata, reason):
    forge.metadata = metadata
    with pytest.raises(IssuerUnavailable, match=reason):
        result(issuers.verify(token()))


def test_tokens_of_other_issuers_ask_nobody(issuers, forge):
    with pytest.raises(IdentityRefused, match="accepts no tokens of the issuer"):
        result(issuers.verify(token(iss="https://evil.example")))
    assert forge.asked == []
