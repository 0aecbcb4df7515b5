"""No token, password or hash shows in anything that could reach a log."""

import traceback

import argon2
from twisted.logger import eventAsText, globalLogPublisher
from twisted.python.failure import Failure

from pkgrepo.auth.login.credentials import named_secret, parse_authorization
from pkgrepo.auth.tokens.bearer import Access
from pkgrepo.auth.tokens.text import hash_token
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import TokenLimits
from pkgrepo.storage.catalog.people.tokens import find_token_by_hash
from pkgrepo.storage.catalog.people.users import find_user, password_hash
from tests.support.auth import PASSWORD, basic
from tests.support.quick_starts import FAST

HOME = "192.0.2.1"


def spellings(value):
    return repr(value), str(value), f"{value!a}"


async def test_no_value_shows_a_secret(scene):
    user = scene.user("alice")
    text, token = scene.token(user, TokenLimits(packages=("x",)))
    identity = await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    issued = await scene.bearer.issue(identity, [Access("n", "main/r1", "x", ("pull",))])
    stored = scene.catalog.peek(password_hash, user.id)
    verdict = await scene.passwords.verify(stored, PASSWORD)
    old = argon2.PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    renewed = await scene.passwords.verify(old, PASSWORD)
    secrets = [PASSWORD, text, text[12:], stored, issued.text, hash_token(text).hex(), renewed.rehashed]
    values = [
        user,
        token,
        identity,
        issued,
        verdict,
        renewed,
        parse_authorization(basic("alice", PASSWORD)),
        parse_authorization(basic("alice", text)),
        parse_authorization(basic(text, "")),
        parse_authorization(b"Bearer " + text.encode()),
        parse_authorization(b"Bearer " + issued.text.encode()),
        named_secret("alice", PASSWORD),
        scene.catalog.peek(find_user, user.id),
        scene.catalog.peek(find_token_by_hash, hash_token(text)),
        scene.bearer.read(issued.text),
        scene.bearer._keys,
        scene.authenticator,
        scene.authenticator._cache,
        scene.throttle,
        scene.passwords,
        scene.uses._pending,
    ]
    secrets += [repr(key) for key in scene.bearer._keys.secrets.values()]
    secrets += [repr(hash_token(text))]
    for value in values:
        for shown in spellings(value):
            assert not any(secret in shown for secret in secrets), type(value)


async def test_no_failure_shows_what_was_presented(scene):
    user = scene.user("alice")
    text, _ = scene.token(user, TokenLimits(cidrs=("198.51.100.0/24",)))
    bad = "wrong but long secret"
    signed = (
        await scene.bearer.issue((await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)), [])
    ).text
    events = []
    globalLogPublisher.addObserver(events.append)
    try:
        shown = []
        for header in (
            basic("alice", bad),
            basic("nobody", bad),
            basic("alice", text),
            b"Bearer " + text.encode(),
            b"Bearer " + text[:-1].encode(),
            b"Bearer " + signed[:-3].encode(),
            b"Basic " + bad.encode(),
            b"Digest " + bad.encode(),
            bad.encode(),
        ):
            try:
                await scene.authenticator.authenticate(header, HOME)
            except PkgrepoError as error:
                shown += [*spellings(error), "".join(traceback.format_exception(error)), Failure(error).getTraceback()]
            else:
                raise AssertionError("it should have failed")
    finally:
        globalLogPublisher.removeObserver(events.append)
    shown += [eventAsText(event) for event in events]
    for secret in (bad, text, text[12:], signed, signed.split(".")[2], FAST.hash("x")[:20]):
        assert not any(secret in each for each in shown)
