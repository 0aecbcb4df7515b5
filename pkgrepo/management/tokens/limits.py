"""Makes the limits of a token from a request, and compares them with those of another token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import evolve
from msgspec import UNSET

from pkgrepo.auth.patterns import covers, is_pattern
from pkgrepo.auth.tokens.limits import NOWHERE, SERVER_SCOPES, check_limits, literal
from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.management.api.names import get_repository, parse_action, parse_actions
from pkgrepo.model import Action, Repository, RepositoryScope, TokenLimits
from pkgrepo.repositories.registry import Registry

from .schema import NewToken, ScopeGiven, TokenChange

DEFAULT_DAYS = 90  # until a new token expires


def split_scopes(scopes: Sequence[str]) -> tuple[frozenset[str], frozenset[Action]]:
    """
    The server scopes among ``scopes``, and the actions, which apply to every repository.

    :raises Invalid: one is neither
    """
    server: set[str] = set()
    actions: set[Action] = set()
    for index, text in enumerate(scopes):
        action = parse_action(text)
        if action is not None:
            actions.add(action)
        elif text.casefold() in SERVER_SCOPES:
            server.add(text.casefold())
        else:
            known = ", ".join((*sorted(SERVER_SCOPES), *Action))
            raise Invalid(f"there is no scope {text!r}; there are {known}", f"/scopes/{index}")
    return frozenset(server), frozenset(actions)


async def limits_of(
    registry: Registry,
    knows: Callable[[Repository], Awaitable[bool]],
    *,
    scopes: Sequence[str] | None,
    repositories: Sequence[ScopeGiven] | None,
    packages: Sequence[str],
    cidrs: Sequence[str],
) -> TokenLimits:
    """
    The limits that a request asks for, without an expiry; ``knows`` tells which repositories the caller may name.

    :raises Invalid: a value is wrong; the error has its pointer
    """
    server, actions = split_scopes(scopes or ())
    if repositories is not None:
        given = enumerate(repositories)
        reached = tuple([await _scope(registry, knows, each, index, actions) for index, each in given])
    elif server == SERVER_SCOPES and actions == frozenset(Action):
        reached = ()  # everything: the rights of the owner, with which an admin's token is that of an admin
    elif actions:
        reached = (RepositoryScope(repository="*", actions=actions),)
    else:
        # an empty list means every repository in the catalog, which is right only without scopes and repositories, or
        # with all scopes and actions
        reached = () if scopes is None else (NOWHERE,)
    if repositories is not None and not reached:
        reached = (NOWHERE,)
    return _checked(TokenLimits(scopes=server, repositories=reached, packages=tuple(packages), cidrs=tuple(cidrs)))


def expiry(body: NewToken, now: datetime, own: TokenLimits | None, max_days: int) -> datetime:
    """
    When a new token expires; ``own`` are the limits of the token that the caller uses, if any.

    :raises Invalid: the request asks for a time in the past, or more than ``max_days`` from ``now``
    """
    if body.expires_at is not None:
        end, pointer = _utc(body.expires_at), "/expires_at"
    else:
        days = min(DEFAULT_DAYS, max_days) if body.expires_in_days is None else body.expires_in_days
        end, pointer = now + timedelta(days=max(-1, min(days, 100_000))), "/expires_in_days"
    if own is not None and own.expires_at is not None and body.expires_at is None and body.expires_in_days is None:
        end = min(end, own.expires_at)
    if not now < end <= now + timedelta(days=max_days):
        raise Invalid(f"a token ends within {max_days} days from now (auth.token_max_days)", pointer)
    return end


def is_cut(body: NewToken, end: datetime, now: datetime, max_days: int) -> bool:
    """Whether a new token that ``expiry`` lets end then was to have the usual time, and has less."""
    usual = body.expires_at is None and body.expires_in_days is None
    return usual and end < now + timedelta(days=min(DEFAULT_DAYS, max_days))


async def narrowed(
    registry: Registry, knows: Callable[[Repository], Awaitable[bool]], limits: TokenLimits, body: TokenChange
) -> TokenLimits:
    """
    The limits of a token after a change; what the request leaves out stays.

    :raises Invalid: a value is wrong; the error has its pointer
    """
    changes: dict[str, Any] = {}
    if body.scopes is not UNSET or body.repositories is not UNSET:
        scopes = None if body.scopes is UNSET else body.scopes
        given = None if body.repositories is UNSET else body.repositories
        wanted = await limits_of(registry, knows, scopes=scopes, repositories=given, packages=(), cidrs=())
        if scopes is not None:
            changes["scopes"] = wanted.scopes
        if given is not None:
            changes["repositories"] = wanted.repositories
    if body.packages is not UNSET:
        changes["packages"] = tuple(body.packages)
    if body.cidrs is not UNSET:
        changes["cidrs"] = tuple(body.cidrs)
    if body.expires_at is not UNSET:
        changes["expires_at"] = _utc(body.expires_at)
    return _checked(evolve(limits, **changes))


def _checked(limits: TokenLimits) -> TokenLimits:
    """
    The limits, after a check of their values.

    :raises Invalid: a value is wrong; the error has its pointer
    """
    if limits.repositories != (NOWHERE,):
        return check_limits(limits)
    check_limits(TokenLimits(scopes=limits.scopes, packages=limits.packages, cidrs=limits.cidrs))
    return limits


def _utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:  # the first and the last day of the calendar, in most time zones
        raise Invalid("there is no such time in UTC", "/expires_at") from None


async def _scope(
    registry: Registry,
    knows: Callable[[Repository], Awaitable[bool]],
    given: ScopeGiven,
    index: int,
    actions: frozenset[Action],
) -> RepositoryScope:
    pointer = f"/repositories/{index}"
    name = given.repository or given.repository_id
    if not name:
        raise Invalid("the object is missing required field `repository`", f"{pointer}/repository")
    if not is_pattern(name):
        name = literal((await get_repository(registry, name, f"{pointer}/repository", knows)).path)
    words = given.actions if given.actions is not None else given.scopes
    chosen = (actions or frozenset({Action.READ})) if words is None else parse_actions(words, f"{pointer}/actions")
    return RepositoryScope(repository=name, actions=chosen, packages=tuple(given.packages))


def check_not_wider(wanted: TokenLimits, own: TokenLimits | None) -> None:
    """
    Raise an error unless everything that ``wanted`` allows is allowed by ``own`` too; None (a login) allows everything.

    The comparison errs on the safe side: a pattern counts as covered only if that is certain.

    :raises Forbidden: the new token would allow more
    """
    if own is None:
        return
    if not wanted.scopes <= own.scopes:
        raise Forbidden(f"this token has no {', '.join(sorted(wanted.scopes - own.scopes))} to pass on")
    if own.repositories and not (
        wanted.repositories and all(_scope_covered(each, own.repositories) for each in wanted.repositories)
    ):
        raise Forbidden("a token makes none that reaches further into repositories than itself")
    if own.packages and not (wanted.packages and all(_covered(each, own.packages) for each in wanted.packages)):
        raise Forbidden("a token makes none that reaches more packages than itself")
    if own.cidrs and not (wanted.cidrs and set(wanted.cidrs) <= set(own.cidrs)):
        raise Forbidden("a token makes none for more networks than its own")
    if own.expires_at is not None and (wanted.expires_at is None or wanted.expires_at > own.expires_at):
        raise Forbidden("a token makes none that outlives it")


def _scope_covered(wanted: RepositoryScope, own: Iterable[RepositoryScope]) -> bool:
    return not wanted.actions or any(
        _covered(wanted.repository.casefold(), (each.repository.casefold(),))
        and wanted.actions <= each.actions
        and (
            not each.packages
            or (bool(wanted.packages) and all(_covered(glob, each.packages) for glob in wanted.packages))
        )
        for each in own
    )


def _covered(wanted: str, own: Iterable[str]) -> bool:
    """Whether one of ``own`` certainly matches all that a pattern matches."""
    return any(covers(each, wanted) for each in own)
