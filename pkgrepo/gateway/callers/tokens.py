"""
Access tokens of package clients: sent elsewhere than in the Authorization header, and the limits of those from a login.

=======================================  ==========================================================================
place                                    clients
=======================================  ==========================================================================
``/t/<token>/repositories/...``          conda and mamba: they move the token of a channel's address to the front
``/t/<token>/...``, ``/.../t/<token>/``  the same where a host or path prefix stands for a repository
``/repositories/<s>/<r>/t/<token>/...``  pixi and others, which keep an address as it is written; also one segment
                                         further down, in a channel at ``/repositories/<s>/<r>/conda``
``X-API-Key: <token>``                   uploads to ``/api/channels/<channel>/upload/<file>``, the request of quetz
=======================================  ==========================================================================

The token is taken out before anything else sees the request, so that it is in no log, error, metric, cache or redirect.
What is left is a request with the header ``Authorization: Token <token>``, which is authenticated like any other.

conda and mamba take only letters, digits and hyphens for a token in an address, so that ``pkgr-u-...`` is another
spelling of ``pkgr_u_...`` there; no token has a hyphen.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final
from urllib.parse import unquote_to_bytes

from attrs import evolve

from pkgrepo.auth.tokens.limits import literal
from pkgrepo.auth.tokens.text import PREFIX
from pkgrepo.errors import ReadOnly
from pkgrepo.http.reading.head import FieldBlock, RequestLine
from pkgrepo.model import Action, Repository, RepositoryScope, TokenLimits
from pkgrepo.proxy.virtual import publish_targets
from pkgrepo.repositories.registry import Registry

_AT_FRONT = b"/t/"
_BELOW = re.compile(rb"(/repositories/[^/?]+/[^/?]+(?:/conda)?)/t/([^/?]+)(?=[/?]|$)")
_SEGMENT = re.compile(rb"/t/([^/]+)(?=/|$)")
# Before the path of a request whose token was taken out, which only a host or alias of a repository may serve: no
# request target has a blank.
TAKEN: Final = b"/t /"
_UPLOAD = b"/api/channels/"
_PREFIX = PREFIX.encode("ascii")
_WORD = re.compile(rb"[0-9A-Za-z_]+")
_NO_TOKEN = b"?"  # a text that is refused like a wrong token


def take_token(line: RequestLine, fields: FieldBlock) -> tuple[RequestLine, FieldBlock]:
    """
    The request with its token in the Authorization header; unchanged if it has none elsewhere.

    A token in the address replaces an Authorization header: who writes both means the channel's.
    """
    if b"/t/" in line.target:
        found = _split(line.target)
        if found is not None:
            target, token = found
            return evolve(line, target=target), _with_token(fields, token)
    elif _UPLOAD in line.target and b"authorization" not in fields.values:
        key = fields.values.get(b"x-api-key")
        if key is not None:
            return line, _with_token(fields, key)
    return line, fields


def _split(target: bytes) -> tuple[bytes, bytes] | None:
    """The target without its token, and the token as in the address; None if it has none."""
    if target.startswith(_AT_FRONT):
        token, slash, rest = target[len(_AT_FRONT) :].partition(b"/")
        if rest.startswith(b"repositories/"):
            return slash + rest, _spelt(token)
    if not target.startswith(b"/repositories/"):
        path, mark, query = target.partition(b"?")
        found = next((each for each in _SEGMENT.finditer(path) if _spelt(each[1]).startswith(_PREFIX)), None)
        if found is None:
            return None
        rest = path[: found.start()] + path[found.end() :] + mark + query
        return TAKEN + rest.removeprefix(b"/"), _spelt(found[1])
    below = _BELOW.match(target)
    if below is None:
        return None
    token = _spelt(below[2])
    # A package may be called "t", but no version or file begins like a token.
    return (below[1] + target[below.end() :], token) if token.startswith(_PREFIX) else None


def _spelt(raw: bytes) -> bytes:
    return unquote_to_bytes(raw.partition(b"?")[0]).replace(b"-", b"_")


def _with_token(fields: FieldBlock, token: bytes) -> FieldBlock:
    word = token if _WORD.fullmatch(token) else _NO_TOKEN
    return evolve(fields, values={**fields.values, b"authorization": b"Token " + word})


# The actions of a token from a login; administration of the repository is not among them.
PERSONAL: Final = frozenset({Action.READ, Action.WRITE, Action.OVERWRITE, Action.DELETE})


def limits_in(
    registry: Registry,
    repository: Repository,
    actions: Collection[Action] = PERSONAL,
    packages: tuple[str, ...] = (),
) -> TokenLimits:
    """
    The limits of a token that is issued in a repository; ``packages`` are globs, and empty for every package.

    It also reaches the repositories that changes go to, which check permissions of their own.
    """
    reached = [repository]
    with suppress(ReadOnly):
        reached += publish_targets(registry, repository)
    paths = dict.fromkeys(literal(each.authority.path) for each in reached)
    return TokenLimits(repositories=tuple(RepositoryScope(path, frozenset(actions), packages) for path in paths))
