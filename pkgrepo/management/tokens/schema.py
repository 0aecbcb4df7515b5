"""The bodies and records of access tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.tokens.limits import NOWHERE
from pkgrepo.management.api.fields import CreatedAt, ObjectId
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.schema import Body, Record, Text, Word
from pkgrepo.model import Token, TokenKind
from pkgrepo.model.structs import meaning

Time = Annotated[datetime, Meta(tz=True)]
Globs = Annotated[list[Word], Meta(max_length=200)]
Words = Annotated[list[str], Meta(max_length=50)]


class ScopeGiven(Body):
    """Repositories that a token opens (an id, storage/name, or a pattern of it), actions, and package patterns."""

    repository: Annotated[str | None, meaning("The repositories: an id, storage/name, or a pattern of it.")] = None
    repository_id: Annotated[str | None, meaning("An older name of repository.")] = None
    actions: Annotated[Words | None, meaning("The actions there.")] = None
    scopes: Annotated[Words | None, meaning("An older name of actions.")] = None
    packages: Annotated[Globs, meaning("Patterns of names of packages; all packages without any.")] = []


class NewToken(Body):
    """
    A new token.

    scopes contains server scopes (see /api/info/scopes), and actions for every repository. A token with neither scopes
    nor repositories has the rights of its owner in repositories, and no server scope; one with all scopes and actions
    has all rights of its owner. It expires after 90 days, or the maximum of the server if that is less, unless
    expires_in_days or expires_at is set.
    """

    name: Annotated[Word, meaning("A name, by which people tell their tokens apart.")]
    description: Annotated[Text, meaning("A text for people.")] = ""
    kind: Annotated[TokenKind, meaning("personal, or deploy for a pipeline.")] = TokenKind.PERSONAL
    scopes: Annotated[Words | None, meaning("The scopes of the server, and actions for every repository.")] = None
    repositories: Annotated[
        Annotated[list[ScopeGiven], Meta(max_length=200)] | None,
        meaning("The repositories that it opens, with actions and patterns of packages."),
    ] = None
    repository_scopes: Annotated[
        Annotated[list[ScopeGiven], Meta(max_length=200)] | None, meaning("An older name of repositories.")
    ] = None
    packages: Annotated[
        Globs, meaning("Patterns of names of packages to which it is limited; all packages without any.")
    ] = []
    cidrs: Annotated[Globs, meaning("Networks from which it can be used; all without any.")] = []
    canary: Annotated[
        bool,
        meaning(
            "Whether it is a canary: any use of it is refused as that of a wrong token is, and reported. It never ends "
            "unless it says when."
        ),
    ] = False
    expires_in_days: Annotated[
        int | None, meaning("For how many days it is valid; 90, or the maximum of the server, by default.")
    ] = None
    expires_at: Annotated[Time | None, meaning("When it ends by itself; null for never.")] = None


class TokenChange(Body):
    """The fields of a token that can be changed; limits can only be reduced."""

    name: Annotated[Word | UnsetType, meaning("A name, by which people tell their tokens apart.")] = UNSET
    description: Annotated[Text | UnsetType, meaning("A text for people.")] = UNSET
    scopes: Annotated[Words | UnsetType, meaning("The scopes of the server, and actions for every repository.")] = UNSET
    repositories: Annotated[
        Annotated[list[ScopeGiven], Meta(max_length=200)] | UnsetType,
        meaning("The repositories that it opens, with actions and patterns of packages."),
    ] = UNSET
    packages: Annotated[
        Globs | UnsetType, meaning("Patterns of names of packages to which it is limited; all packages without any.")
    ] = UNSET
    cidrs: Annotated[Globs | UnsetType, meaning("Networks from which it can be used; all without any.")] = UNSET
    expires_at: Annotated[Time | UnsetType, meaning("When it ends by itself; null for never.")] = UNSET


class Rotation(Body):
    """How long the old token remains valid, in seconds."""

    grace_s: Annotated[int, Meta(ge=0, le=7 * 86400), meaning("How long the old token remains valid, in seconds.")] = 0


class ScopeRecord(Record):
    """Repositories (a pattern of storage/name) that a token opens, with actions and package patterns."""

    repository: Annotated[str, meaning("The repositories: an id, storage/name, or a pattern of it.")]
    actions: Annotated[list[str], meaning("The actions there.")]
    packages: Annotated[list[str], meaning("Patterns of names of packages; all packages without any.")]


class AskedRecord(Record):
    """The scopes and repositories as the request for the token gave them; null for fields that it did not have."""

    scopes: Annotated[list[str] | None, meaning("The scopes of the request; null if it had none.")]
    repositories: Annotated[list[ScopeGiven] | None, meaning("The repositories of the request; null if it had none.")]


class TokenRecord(Record):
    """An access token without its text; shown is the beginning and the end of the text."""

    id: ObjectId
    name: Annotated[str, meaning("A name, by which people tell their tokens apart.")]
    description: Annotated[str, meaning("A text for people.")]
    kind: Annotated[TokenKind, meaning("personal, or deploy for a pipeline.")]
    owner: Annotated[str, meaning("The name of the user whose token it is.")]
    shown: Annotated[str, meaning("The beginning and the end of the text of the token.")]
    scopes: Annotated[list[str], meaning("The scopes of the server, and actions for every repository.")]
    repository_access: Annotated[
        Literal["owner", "listed", "none"],
        meaning("owner (all repositories, as the owner), listed (those in repositories) or none."),
    ]
    repositories: Annotated[
        list[ScopeRecord], meaning("The repositories that it opens, with actions and patterns of packages.")
    ]
    asked: Annotated[
        AskedRecord | None, meaning("What the request for the token gave; null if it was not created by the API.")
    ]
    packages: Annotated[
        list[str], meaning("Patterns of names of packages to which it is limited; all packages without any.")
    ]
    cidrs: Annotated[list[str], meaning("Networks from which it can be used; all without any.")]
    expires_at: Annotated[datetime | None, meaning("When it ends by itself; null for never.")]
    revoked_at: Annotated[datetime | None, meaning("When it was revoked; null if it is not.")]
    created_at: CreatedAt
    created_from: Annotated[str, meaning("The address from which it was created.")]
    last_used_at: Annotated[datetime | None, meaning("When it was last used; null for never.")]
    last_used_ip: Annotated[str | None, meaning("The address from which it was last used.")]
    last_used_client: Annotated[str | None, meaning("The program that last used it.")]
    uses: Annotated[int, meaning("How often it was used.")]
    canary: Annotated[
        bool, meaning("Whether any use of it is refused and reported; only its owner and admins are told.")
    ]

    measured = frozenset({"last_used_at", "last_used_ip", "last_used_client", "uses"})

    @classmethod
    def of(cls, token: Token, owner: str, /, *, told: bool = False, **more: str | list[str]) -> Self:
        """The record of a token; ``owner`` is a user name. The owner and admins are ``told`` whether it is a canary."""
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
            canary=told and token.is_canary,
            **more,
        )


class NewTokenRecord(TokenRecord):
    """A new token with its text, which is not returned again; notes are sentences about what was not as expected."""

    token: Annotated[str, meaning("The text of the token, which is not returned again.")]
    notes: Annotated[list[str], meaning("Sentences about what was not as expected.")] = []


class BearerAnswer(Record):
    """A short-lived bearer token; expires_in is in seconds."""

    token: Annotated[str, meaning("The bearer token.")]
    access_token: Annotated[str, meaning("The same as token, for older clients.")]
    expires_in: Annotated[int, meaning("For how many seconds it is valid.")]
    issued_at: Annotated[datetime, meaning("When it was made.")]
    scope: Annotated[str, meaning("What it permits, in the form of the request.")]
    refresh_token: Annotated[str | UnsetType, meaning("A token for new ones, if the request wants one.")] = UNSET
