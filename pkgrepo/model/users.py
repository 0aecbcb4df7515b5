"""Users, groups, and the identity of a caller."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from .permissions import Action
from .tokens import TokenLimits


class UserKind(StrEnum):
    """The kind of a user: a person can log in with a password, a service has only tokens."""

    PERSON = "person"
    SERVICE = "service"


@frozen
class User:
    """
    A person or a service with an account, without the hash of the password.

    ``generation`` grows when all bearer tokens that were issued to the user must stop working. ``default_actions``
    apply in repositories in which the user has no grant.
    """

    id: int
    uid: str
    username: str
    key: str
    name: str
    email: str
    kind: UserKind
    active: bool
    admin: bool
    user_manager: bool
    system_manager: bool
    default_actions: frozenset[Action]
    generation: int
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None


@frozen
class Group:
    """A named set of users; grants and memberships may be given to it."""

    id: int
    uid: str
    key: str
    name: str
    description: str
    created_at: datetime


@frozen
class Identity:
    """
    Who the caller is, by the credentials of the request.

    ``via`` is their kind: ``anonymous``, ``password``, ``token``, ``bearer`` (a short-lived token from the token
    service) or ``session`` (a login in a browser, whose key is ``session_id``). ``limits`` are those of the token: the
    caller may do what the owner may and the limits allow. ``scoped`` says of a bearer token whether it was requested
    with scopes, and is None for all other credentials.
    """

    user_id: int | None = None
    username: str = ""
    admin: bool = False
    user_manager: bool = False
    system_manager: bool = False
    via: str = "anonymous"
    token_id: int | None = None
    limits: TokenLimits | None = None
    generation: int = 0
    scoped: bool | None = None
    session_id: int | None = None

    @property
    def anonymous(self) -> bool:
        """Whether the request had no credentials."""
        return self.user_id is None


ANONYMOUS = Identity()
