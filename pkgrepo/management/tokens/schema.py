"""The bodies and records of access tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.tokens.limits import NOWHERE
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.schema import Body, Record, Text, Word
from pkgrepo.model import Token, TokenKind

Time = Annotated[datetime, Meta(tz=True)]
Globs = Annotated[list[Word], Meta(max_length=200)]
Words = Annotated[list[str], Meta(max_length=50)]


class ScopeGiven(Body):
    """
    Repositories that a token opens (an id, storage/name, or a pattern of it), actions, and package patterns.

    repository_id and scopes are older names of repository and actions.
    """

    repository: str | None = None
    repository_id: str | None = None
    actions: Words | None = None
    scopes: Words | None = None
    packages: Globs = []


class NewToken(Body):
    """
    A new token.

    scopes contains server scopes (see /api/info/scopes), and actions for every repository. A token with neither scopes
    nor repositories has the rights of its owner in repositories, and no server scope; one with all scopes and actions
    has all rights of its owner. It expires after 90 days, or the
    maximum of the server if that is less, unless expires_in_days or expires_at is set. repository_scopes is an older
    name of repositories.
    """

    name: Word
    description: Text = ""
    kind: TokenKind = TokenKind.PERSONAL
    scopes: Words | None = None
    repositories: Annotated[list[ScopeGiven], Meta(max_length=200)] | None = None
    repository_scopes: Annotated[list[ScopeGiven], Meta(max_length=200)] | None = None
    packages: Globs = []
    cidrs: Globs = []
    expires_in_days: int | None = None
    expires_at: Time | None = None


class TokenChange(Body):
    """The fields of a token that can be changed; limits can only be reduced."""

    name: Word | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    scopes: Words | UnsetType = UNSET
    repositories: Annotated[list[ScopeGiven], Meta(max_length=200)] | UnsetType = UNSET
    packages: Globs | UnsetType = UNSET
    cidrs: Globs | UnsetType = UNSET
    expires_at: Time | UnsetType = UNSET


class Rotation(Body):
    """How long the old token remains valid, in seconds."""

    grace_s: Annotated[int, Meta(ge=0, le=7 * 86400)] = 0


class ScopeRecord(Record):
    """Repositories (a pattern of storage/name) that a token opens, with actions and package patterns."""

    repository: str
    actions: list[str]
    packages: list[str]


class AskedRecord(Record):
    """The scopes and repositories as the request for the token gave them; null for fields that it did not have."""

    scopes: list[str] | None
    repositories: list[ScopeGiven] | None


class TokenRecord(Record):
    """
    An access token without its text; shown is the beginning and the end of the text.

    repository_access is owner (all repositories, with the rights of the owner), listed (those in repositories) or none.
    asked is null for tokens that were not created through this API.
    """

    id: str
    name: str
    description: str
    kind: TokenKind
    owner: str
    shown: str
    scopes: list[str]
    repository_access: Literal["owner", "listed", "none"]
    repositories: list[ScopeRecord]
    asked: AskedRecord | None
    packages: list[str]
    cidrs: list[str]
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    created_from: str
    last_used_at: datetime | None
    last_used_ip: str | None
    last_used_client: str | None
    uses: int

    measured = frozenset({"last_used_at", "last_used_ip", "last_used_client", "uses"})

    @classmethod
    def of(cls, token: Token, owner: str, /, **more: str | list[str]) -> Self:
        """The record of a token; ``owner`` is a user name."""
        limits = token.limits
        reached = [each for each in limits.repositories if each != NOWHERE]
        return cls.from_attributes(
            token,
            id=token.uid,
            owner=owner,
            scopes=sorted(limits.scopes),
            repository_access="listed" if reached else "none" if limits.repositories else "owner",
            repositories=[
                ScopeRecord(
                    repository=each.repository, actions=action_names(each.actions), packages=list(each.packages)
                )
                for each in reached
            ],
            asked=None if token.asked is None else msgspec.convert(token.asked, AskedRecord),
            packages=list(limits.packages),
            cidrs=list(limits.cidrs),
            expires_at=limits.expires_at,
            **more,
        )


class NewTokenRecord(TokenRecord):
    """A new token with its text, which is not returned again; notes are sentences about what was not as expected."""

    token: str
    notes: list[str] = []


class BearerAnswer(Record):
    """A short-lived bearer token; expires_in is in seconds. access_token repeats token for older clients."""

    token: str
    access_token: str
    expires_in: int
    issued_at: datetime
    scope: str
    refresh_token: str | UnsetType = UNSET
