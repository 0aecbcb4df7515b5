"""Passkeys, with an authenticator that the test is: made with the password, used instead of it, guarded, removed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from attrs import define
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pkgrepo.auth.login.passkeys import encode
from pkgrepo.storage.catalog.people.linked_identities import end_linked, find_linked
from pkgrepo.storage.catalog.people.users import find_user_by_name
from tests.support.memory_server import OTHER_PASSWORD, Reply, Stack

ORIGIN = "http://registry.example"
PROOF = {"username": "bob", "password": OTHER_PASSWORD}
MAKERS = {
    "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "edwards": ed25519.Ed25519PrivateKey.generate,
}


@define
class Authenticator:
    """A device with one key, at one address; each field may be changed by a test."""

    stack: Stack
    key: Any
    credential: bytes = b"the id of a passkey"
    count: int = 0
    flags: int = 0x05  # the user is there, and is verified
    origin: str = ORIGIN
    rp_id: str = "registry.example"

    def client_data(self, kind: str, challenge: str, **more: Any) -> bytes:
        """What a browser says."""
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin, **more}).encode()

    def data(self, *, new: bool = False) -> bytes:
        """What the authenticator says."""
        head = hashlib.sha256(self.rp_id.encode()).digest() + bytes([self.flags | (0x40 if new else 0)])
        head += self.count.to_bytes(4)
        return head + (bytes(16) + len(self.credential).to_bytes(2) + self.credential + b"\xa0" if new else b"")

    def sign(self, data: bytes) -> bytes:
        """The signature of the key."""
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            return self.key.sign(data, ec.ECDSA(SHA256()))
        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(data, padding.PKCS1v15(), SHA256())
        signature: bytes = self.key.sign(data)
        return signature

    async def begin(self) -> Any:
        """Begin to make a passkey of bob."""
        return await self.stack.ok("POST", "/user/passkeys/begin", PROOF, who=None)

    async def make(self, begun: Any | None = None, **more: Any) -> Reply:
        """Make the passkey."""
        found = begun or await self.begin()
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        body = {
            "ticket": found["ticket"],
            "name": "a key",
            "client_data": encode(self.client_data("webauthn.create", found["challenge"])),
            "authenticator_data": encode(self.data(new=True)),
            "public_key": encode(public),
            **more,
        }
        return await self.stack.api("POST", "/user/passkeys", body, who=None)

    async def answer(self, **said: Any) -> dict[str, str]:
        """What a browser sends to log in."""
        begun = await self.stack.ok("POST", "/user/login/passkey/begin", {}, who=None)
        kind = said.pop("type", "webauthn.get")
        challenge = said.pop("challenge", begun["challenge"])
        client_data, data = self.client_data(kind, challenge, **said), self.data()
        signature = self.sign(data + hashlib.sha256(client_data).digest())
        parts = {"client_data": client_data, "authenticator_data": data, "signature": signature}
        encoded = {name: encode(value) for name, value in parts.items()}
        return {"ticket": begun["ticket"], "credential_id": encode(self.credential), **encoded}

    async def log_in(self, **said: Any) -> Reply:
        """Log in with the passkey."""
        return await self.stack.api("POST", "/user/login/passkey", await self.answer(**said), who=None)


async def whoami(stack: Stack, login: Reply) -> str:
    """The user of the session that a login has begun."""
    cookie = login.headers["set-cookie"].partition(";")[0]
    return str((await stack.call("GET", "/api/user/whoami", who=None, headers={"Cookie": cookie})).json["username"])


async def device_of_bob(stack: Stack) -> Authenticator:
    await stack.add_user("bob")
    return Authenticator(stack, MAKERS["ec"]())


@pytest.mark.parametrize("kind", MAKERS)
async def test_a_passkey_logs_in_without_the_password(stack: Stack, kind: str) -> None:
    await stack.add_user("bob")
    device = Authenticator(stack, MAKERS[kind]())
    assert (await device.make()).status == 201
    login = await device.log_in()
    assert (login.status, login.json["username"]) == (200, "bob")
    assert await whoami(stack, login) == "bob"
    [row] = await stack.ok("GET", "/user/passkeys", who="bob")
    assert row["last_used_at"] is not None
    assert (await device.make()).status == 409, "it is there already"


async def test_it_counts_where_a_second_factor_is_required(make_stack: Any) -> None:
    stack = await make_stack(auth__second_factor="everyone")
    with_session = {"username": "admin", "password": stack.password("admin")}
    device = Authenticator(stack, MAKERS["ec"]())
    begun = await stack.ok("POST", "/user/passkeys/begin", with_session, who=None)
    assert (await device.make(begun)).status == 201
    assert (await stack.api("POST", "/user/login", with_session, who=None)).status == 401
    assert await whoami(stack, await device.log_in()) == "admin"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"origin": "https://evil.example"}, {}),
        ({"rp_id": "evil.example"}, {}),
        ({"flags": 0x01}, {}),
        ({"flags": 0x04}, {}),
        ({"key": MAKERS["ec"]()}, {}),
        ({"key": MAKERS["rsa"]()}, {}),
        ({"credential": b"another"}, {}),
        ({}, {"type": "webauthn.create"}),
        ({}, {"challenge": encode(bytes(32))}),
        ({}, {"crossOrigin": True}),
    ],
    ids=["origin", "site", "unverified", "absent", "key", "kind", "unknown", "type", "challenge", "frame"],
)
async def test_what_is_not_right_logs_nobody_in(stack: Stack, changes: Any, said: Any) -> None:
    device = await device_of_bob(stack)
    assert (await device.make()).status == 201
    for name, value in changes.items():
        setattr(device, name, value)
    assert (await device.log_in(**said)).status == 422


async def test_an_answer_counts_once_and_a_copied_key_is_noticed(stack: Stack) -> None:
    device = await device_of_bob(stack)
    device.count = 5
    assert (await device.make()).status == 201
    device.count = 6
    answer = await device.answer()
    statuses = [(await stack.api("POST", "/user/login/passkey", answer, who=None)).status for _ in range(2)]
    assert statuses == [200, 422]
    assert (await device.log_in()).status == 422, "the counter has not moved"
    device.count = 7
    assert (await device.log_in()).status == 200


async def test_making_one_needs_the_password_and_the_right_ticket(stack: Stack) -> None:
    device = await device_of_bob(stack)
    wrong = PROOF | {"password": "wrong"}
    assert (await stack.api("POST", "/user/passkeys/begin", wrong, who=None)).status == 401
    login = await stack.ok("POST", "/user/login/passkey/begin", {}, who=None)
    assert (await device.make(login)).status == 422
    for field in ("client_data", "authenticator_data", "public_key"):
        for value in ("", "!", encode(b"x"), encode(b"x" * 5000)):
            assert (await device.make(**{field: value})).status == 422, (field, value)
    weak = rsa.generate_private_key(65537, 1024)
    device.key = weak
    assert (await device.make()).status == 422
    assert await stack.ok("GET", "/user/passkeys", who="bob") == []


async def test_removing_a_passkey_ends_what_was_logged_in_with_it(stack: Stack) -> None:
    device = await device_of_bob(stack)
    passkey = (await device.make()).json
    login = await device.log_in()
    assert (await stack.api("DELETE", f"/user/passkeys/{passkey['id']}", who="admin")).status == 404
    await stack.ok("DELETE", f"/user/passkeys/{passkey['id']}", who="bob")
    assert await whoami(stack, login) == ""
    assert (await device.log_in()).status == 422
    assert (await device.make()).status == 201
    await stack.ok("DELETE", "/users/bob/passkeys")
    assert await stack.ok("GET", "/user/passkeys", who="bob") == []
    await device.make()
    await stack.ok("PUT", "/users/bob/status", {"active": False})
    assert (await device.log_in()).status == 422


async def test_it_ends_with_an_account_that_a_provider_has_removed(stack: Stack) -> None:
    device = await device_of_bob(stack)
    await device.make()
    login = await device.log_in()
    catalog = stack.assembly.core.catalog
    bob = await catalog.look(find_user_by_name, "bob")
    row = "INSERT INTO linked_identity (issuer, subject, user_id, created_at, checked_at) VALUES ('i', 's', ?, 0, 0)"
    await catalog.write(lambda tx: tx.execute(row, (bob.id,)))
    linked = await catalog.look(find_linked, "i", "s")
    await catalog.write(end_linked, linked, now_ms=1)
    assert await whoami(stack, login) == "bob", "who has a password here comes from here, too"
    await stack.ok("PUT", "/users/bob/password", {"password": None})
    assert (await device.log_in()).status == 200
    await catalog.write(end_linked, linked, now_ms=1)
    assert (await device.log_in()).status == 422
