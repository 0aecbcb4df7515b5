"""The server as a whole."""

from __future__ import annotations

from typing import Any

from pkgrepo.management.api.schema import Body, Record, Word


class Limits(Record):
    """Limits of requests: sizes in bytes, max_page in items, token_max_days in days."""

    max_upload: int
    max_body: int
    max_page: int
    token_max_days: int


class FormatInfo(Record):
    """A package format; aliases are other names that the API accepts for it."""

    name: str
    aliases: list[str]


class Info(Record):
    """The version, formats and limits of the server; installed is true once it has a user."""

    name: str
    version: str
    installed: bool
    formats: list[FormatInfo]
    login_methods: list[str]
    limits: Limits


class ScopeInfo(Record):
    """A scope of access tokens or an action in repositories."""

    name: str
    description: str


class Scopes(Record):
    """All scopes of access tokens, and all actions in repositories."""

    scopes: list[ScopeInfo]
    actions: list[ScopeInfo]


class FirstAdmin(Body):
    """The account of the first admin."""

    username: Word
    password: str
    name: str = ""
    email: str = ""


class Install(Body):
    """The request that creates the first admin."""

    user: FirstAdmin


class Health(Record):
    """The status of the server: ok, degraded or unavailable. Only admins get the results of the checks."""

    status: str
    checks: dict[str, Any] | None = None
