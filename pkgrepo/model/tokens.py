"""Access tokens and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import frozen

from .permissions import Action


@frozen
class RepositoryScope:
    """
    Repositories that a token opens, as a glob of ``storage/name``, and the actions that it allows there.

    ``packages`` are globs of package keys; the scope covers only these packages. Empty means every package.
    """

    repository: str
    actions: frozenset[Action]
    packages: tuple[str, ...] = ()


@frozen
class TokenLimits:
    """The most that a token allows. Empty ``repositories`` mean every repository, empty ``packages`` every package."""

    scopes: frozenset[str] = frozenset()
    repositories: tuple[RepositoryScope, ...] = ()
    packages: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    expires_at: datetime | None = None


class TokenKind(StrEnum):
    """
    The purpose of a token; its first letter is part of the text of the token.

    A login token is issued after a login with a password; container clients store it instead of the password.
    """

    PERSONAL = "personal"
    SERVICE = "service"
    CI = "ci"
    REPOSITORY = "repository"
    LOGIN = "login"


@frozen
class Token:
    """
    An access token without its text, which is never stored.

    ``shown`` is the prefix and the last characters of the text, so that people can tell their tokens apart. ``asked``
    are the scopes and repositories as the request for the token named them, None for tokens that no request named them
    for. Only ``limits``, which were made of them, decide what the token allows.
    """

    id: int
    uid: str
    user_id: int
    shown: str
    kind: TokenKind
    name: str
    description: str
    limits: TokenLimits
    revoked_at: datetime | None
    created_at: datetime
    created_from: str
    last_used_at: datetime | None
    last_used_ip: str | None
    last_used_client: str | None
    uses: int
    asked: Mapping[str, Any] | None = None


@frozen
class TokenUse:
    """The uses of one token since they were last written to the catalog."""

    token_id: int
    at_ms: int
    address: str
    client: str
    count: int
