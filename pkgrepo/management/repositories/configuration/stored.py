"""The base of handlers that read and replace stored configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.errors import Conflict, Forbidden
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import check_independent, get_repository
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.definitions.credentials import seal_credentials
from pkgrepo.proxy.definitions.members import targets_in
from pkgrepo.proxy.definitions.storing import ca_files, configure_repository, shown_config, with_member_ids

from .parts import pointing_into, try_routes, validated

# Parts without secrets; those of routes are masked.
SHOWN_IN_AUDIT = frozenset(
    {
        "auth",
        "cache",
        "cache_ttl",
        "members",
        "policy",
        "proxy",
        "publish_snapshots_to",
        "publish_to",
        "push_rules",
        "quota",
        "resolution",
        "retention",
        "routes_are_replicas",
    }
)


def whole(call: Call, repository: Repository) -> dict[str, Any]:
    """The configuration as one object, as people may see it: the fixed object and the settings."""
    return {**shown_config(repository, call.registry), **repository.settings}


async def storable(call: Call, config: Mapping[str, Any], before: Repository | None = None) -> Mapping[str, Any]:
    """
    The fixed object as it is stored, with ids of members and sealed secrets, for ``before`` or a new repository.

    New members are repositories that the caller may read: readers of the virtual repository get their packages.
    Only system managers name files of the server that no route has named before.

    :raises Invalid: there is no such member, or a masked secret has no stored one; :raises Forbidden: see above
    """
    stored = before.config if before is not None else {}
    if ca_files(config) - ca_files(stored) and not await call.services.authorizer.may_use(call.identity, "system"):
        raise Forbidden("only system managers and admins may set ca_file, which names a file of the server")
    named: dict[str, Repository] = {}
    if config["type"] == RepositoryType.VIRTUAL:
        present = virtual_config_of(before).members if before and before.type is RepositoryType.VIRTUAL else ()

        async def may_add(repository: Repository) -> bool:
            return repository.uid in present or await call.may(Action.READ, repository)

        places = {name: f"/members/{index}" for index, name in enumerate(config["members"])}
        targets = {name: f"/{key}" for key, name in targets_in(config).items()}
        for name, pointer in (targets | places).items():
            named[name] = await get_repository(call.registry, name, pointer, may_add)
    return seal_credentials(with_member_ids(config, lambda name, _: named[name]), call.services.secrets, stored)


async def replace(call: Call, repository: Repository, config: dict[str, Any], prefix: str) -> Repository:
    """Check and write ``config``; ``prefix`` is the pointer of the body in it, and is cut from errors."""
    check_independent(repository)
    with pointing_into("", cut=prefix):
        fixed, settings = validated(call.services.formats[repository.format], config, "")
        if fixed["type"] != repository.type:
            raise Conflict(f"a repository of type {repository.type} cannot become one of type {fixed['type']}")
        fixed = await storable(call, fixed, repository)
        before, after = {**repository.config, **repository.settings}, {**fixed, **settings}
        changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        if not changed:
            call.audited = True
            return repository
        shown = whole(call, repository), whole(call, evolve(repository, config=fixed, settings=settings))
        result: Repository = await call.write(
            call.entry(detail=_difference(changed, *shown)),
            configure_repository,
            repository,
            companions=call.services.companions,
            config=fixed,
            settings=settings,
            now_ms=call.now_ms,
        )
    call.services.on_change(result)
    await try_routes(call.services, result)
    return result


def _difference(changed: list[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "changed": changed,
        "before": {key: before.get(key) for key in changed if key in SHOWN_IN_AUDIT},
        "after": {key: after.get(key) for key in changed if key in SHOWN_IN_AUDIT},
    }
