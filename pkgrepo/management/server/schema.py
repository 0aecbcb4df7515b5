"""The server as a whole."""

from __future__ import annotations

from typing import Any

from pkgrepo.management.api.schema import Body, Record, Word


class Limits(Record):
    """What is allowed at most; sizes in bytes."""

    max_upload: int
    max_body: int
    max_page: int
    token_max_days: int


class FormatInfo(Record):
    """A package format, and how else the API lets one spell it."""

    name: str
    aliases: list[str]


class Info(Record):
    """What this server is."""

    name: str
    version: str
    installed: bool
    formats: list[FormatInfo]
    login_methods: list[str]
    limits: Limits


class ScopeInfo(Record):
    """Something that an access token may be given."""

    name: str
    description: str


class Scopes(Record):
    """Every scope of access tokens, and every action in repositories."""

    scopes: list[ScopeInfo]
    actions: list[ScopeInfo]


class FirstAdmin(Body):
    """Who shall be the first admin."""

    username: Word
    password: str
    name: str = ""
    email: str = ""


class Install(Body):
    """The first admin."""

    user: FirstAdmin


class Health(Record):
    """Whether the server serves; admins see what was checked."""

    status: str
    checks: dict[str, Any] | None = None
