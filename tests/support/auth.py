"""Users, tokens and the authentication services of a server, over a catalog in memory and a clock that tests set."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from twisted.internet import reactor

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.checkers import PasswordChecker, SignedChecker, TokenChecker, make_portal
from pkgrepo.auth.login.directories import Directories
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.login.second_factors import SecondFactors
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens, SigningKeys
from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.model import Repository, RepositoryType, Token, TokenKind, TokenLimits, User, Visibility
from pkgrepo.storage.catalog.people.tokens import add_token
from pkgrepo.storage.catalog.people.users import add_user, identity_snapshot
from pkgrepo.storage.secret_box import SecretBox
from tests.support.catalog import MemoryCatalog, add_repository
from tests.support.quick_starts import FAST

PASSWORD = "quite a long secret"
START = 1_800_000_000.0
HOME = "192.0.2.1"  # the address of a client


def make_factors(catalog: Any, throttle: Throttle) -> SecondFactors:
    """Second factors that nobody must have."""
    return SecondFactors(catalog, SecretBox(bytes(32)), throttle)


class SettableTime:
    """A clock in seconds since the epoch, which only `advance` moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class InlineThreads:
    """A thread pool that runs calls at once; with ``held`` set to a list, calls wait there until `release`."""

    def __init__(self) -> None:
        self.calls = 0
        self.held: list[Any] | None = None

    async def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        from twisted.internet.defer import Deferred

        self.calls += 1
        if self.held is not None:
            gate: Deferred[None] = Deferred()
            self.held.append(gate)
            await gate
        return function(*args)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for gate in held:
            gate.callback(None)


class AuthServices:
    """The services of ``pkgrepo.auth``, connected as in a server."""

    def __init__(self, directories: Sequence[Any] = ()) -> None:
        self.clock = SettableTime()
        self.catalog = MemoryCatalog()
        self.threads = InlineThreads()
        self.passwords = Passwords(self.threads, reactor, hasher=FAST)
        self.throttle = Throttle(clock=self.clock)
        self.bearer = BearerTokens(self.catalog, SigningKeys.single("k" * 40), clock=self.clock)
        self.uses = TokenUses(self.catalog, clock=self.clock)
        self.portal = make_portal(
            self.catalog,
            [
                PasswordChecker(
                    self.catalog,
                    self.passwords,
                    self.throttle,
                    make_factors(self.catalog, self.throttle),
                    directories=Directories(
                        directories, self.catalog, parallel=4, reactor=reactor, now_ms=lambda: self.now_ms
                    ),
                    clock=self.clock,
                ),
                TokenChecker(self.catalog, clock=self.clock),
                SignedChecker(self.catalog, self.bearer, clock=self.clock),
            ],
        )
        serial = identity_snapshot(self.catalog)
        self.authenticator = Authenticator(self.catalog, self.portal, self.uses, clock=self.clock, serial=serial)
        self.authorizer = Authorizer(self.catalog, clock=self.clock, serial=serial)

    @property
    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    def user(self, username: str = "alice", *, password: str = PASSWORD, **fields: Any) -> User:
        hashed = FAST.hash(password) if password else ""
        return self.catalog.do(add_user, username=username, password_hash=hashed, now_ms=self.now_ms, **fields)

    def token(
        self, user: User, limits: TokenLimits | None = None, kind: TokenKind = TokenKind.PERSONAL
    ) -> tuple[str, Token]:
        text = make_token(kind)
        token = self.catalog.do(
            add_token,
            user_id=user.id,
            hash=hash_token(text),
            shown=shown_part(text),
            kind=kind,
            name="t",
            now_ms=self.now_ms,
            limits=limits,
        )
        return text, token

    def repository(self, repository_id: int = 1, **fields: Any) -> Repository:
        value = make_repository(repository_id, **fields)
        add_repository(self.catalog, repository_id, format=value.format)
        return value


def basic(username: str, secret: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{username}:{secret}".encode())


def make_repository(
    repository_id: int = 1,
    *,
    format: str = "python",
    visibility: Visibility = Visibility.PRIVATE,
    settings: Mapping[str, Any] | None = None,
) -> Repository:
    at = datetime.fromtimestamp(START, UTC)
    return Repository(
        id=repository_id,
        uid=f"u{repository_id}",
        storage_id=1,
        storage_name="main",
        name=f"r{repository_id}",
        format=format,
        type=RepositoryType.HOSTED,
        visibility=visibility,
        active=True,
        description="",
        config={},
        settings=settings or {},
        serial=0,
        bytes_used=0,
        package_count=0,
        created_at=at,
        updated_at=at,
    )


def at(seconds: float) -> datetime:
    """Return the time so many seconds after `START`."""
    return datetime.fromtimestamp(START + seconds, UTC)


async def fails(scene: AuthServices, header: bytes, address: str = HOME) -> None:
    """Assert that nobody is authenticated by this header."""
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.authenticate(header, address)
