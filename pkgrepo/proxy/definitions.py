"""
Adds, changes and removes repositories of all types, and shows their configurations.

=============  ================================================  ============================================
place          credentials of routes                             members of virtual repositories
=============  ================================================  ============================================
request        in clear, or masked: the stored ones              paths (storage/name) or public ids
catalog        sealed                                            public ids, so that renaming keeps members
response       masked                                            paths
=============  ================================================  ============================================

Credentials are sealed for the origin, user name and hosts that they were given for: changing the address of a route
needs them again, so that an editor of a repository cannot have them sent elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pkgrepo.errors import Invalid, SecretUnreadable, UpstreamMisconfigured
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.outbound.urls import Target, parse_url
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.proxy.virtual import check_members, check_no_member, targets_in
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.secret_box import SecretBox

MASK = "***"  # a secret in responses; sent back, it stands for the stored one
SECRETS = frozenset({"password", "token"})  # keys of ``auth``
Config = Mapping[str, Any]  # the fixed object of a configuration, or a route in it


def with_member_ids(config: Config, find: Callable[[str, str], Repository]) -> Config:
    """
    The fixed configuration with public ids instead of the names of members.

    ``find`` gets a name and its JSON pointer, and returns the repository or raises an error.
    """
    if config["type"] != RepositoryType.VIRTUAL:
        return config
    members = [find(name, f"/members/{index}").uid for index, name in enumerate(config["members"])]
    targets = {key: find(name, f"/{key}").uid for key, name in targets_in(config).items()}
    return {**config, "members": members, **targets}


def shown_config(repository: Repository, registry: Registry) -> dict[str, Any]:
    """The fixed configuration as people may see it: it can be sent back without a change."""
    config = mask_credentials(repository.config)
    if repository.type is RepositoryType.VIRTUAL:
        config["members"] = [_path(registry, uid) for uid in config["members"]]
        config |= {key: _path(registry, uid) for key, uid in targets_in(config).items()}
    return config


def ca_files(config: Config) -> set[str]:
    """The files of the server that the routes of a fixed configuration name."""
    routes = config.get("proxy", {}).get("routes", ())
    return {route["ca_file"] for route in routes if "ca_file" in route}


def add_repository(
    tx: Transaction, /, *, companions: Companions, format: str, config: Config, now_ms: int, **more: Any
) -> Repository:
    """
    Add a repository, of the type that its configuration says, and its companions.

    :raises Invalid: the members of a virtual repository are wrong
    """
    _check(tx, config, format)
    added = repositories.add_repository(tx, format=format, config=config, type=config["type"], now_ms=now_ms, **more)
    companions.ensure(tx, added, now_ms)
    return added


def configure_repository(
    tx: Transaction,
    repository: Repository,
    *,
    companions: Companions,
    config: Config,
    settings: Config,
    now_ms: int,
    then: Callable[[Transaction, Repository, int], None] | None = None,
) -> Repository:
    """
    Change the configuration of a repository; its companions follow, and what ``then`` writes.

    :raises Invalid: the members of a virtual repository are wrong
    """
    _check(tx, config, repository.format, repository.uid)
    changed = repositories.update_repository(tx, repository.id, config=config, settings=settings, now_ms=now_ms)
    companions.ensure(tx, changed, now_ms)
    if then is not None:
        then(tx, changed, now_ms)
    return changed


def remove_repository(tx: Transaction, repository: Repository, *, now_ms: int, purge: bool, actor: Actor) -> None:
    """Remove a repository. :raises Conflict: it is a member of a virtual repository"""
    check_no_member(tx, repository)
    repositories.remove_repository(tx, repository.id, now_ms=now_ms, purge=purge, actor=actor)


def _check(r: Reader, config: Config, format: str, uid: str = "") -> None:
    if config["type"] == RepositoryType.VIRTUAL:
        check_members(r, config, format, uid)


def _path(registry: Registry, uid: str) -> str:
    found = registry.find_uid(uid)
    return uid if found is None else found.path


def seal_credentials(config: Config, box: SecretBox, before: Config | None = None) -> Config:
    """
    The configuration with its secrets sealed; a masked one is taken from the same route of ``before``.

    :raises Invalid: a secret is masked, and ``before`` has no route with its origin and user name
    """

    def seal(index: int, route: Config, key: str) -> str:
        if route["auth"][key] == MASK:
            return _stored(before or {}, route, key, f"/proxy/routes/{index}/auth/{key}")
        return box.seal(route["auth"][key], _context(route))

    return _with_secrets(config, seal)


def mask_credentials(config: Config) -> dict[str, Any]:
    """The configuration as people may see it."""
    return _with_secrets(config, lambda *_: MASK)


def authorization_of(route: Route, box: SecretBox) -> str | None:
    """
    The value of the Authorization field for the origin of a route (RFC 7617, RFC 6750); None without credentials.

    :raises UpstreamMisconfigured: it cannot be decrypted, because the key of the server was replaced
    """
    if route.credentials is None:
        return None
    username = route.credentials.username
    try:
        secret = box.open(
            route.credentials.sealed, _context_of(route.target, username, dict(route.hosts), route.token_hosts)
        )
    except SecretUnreadable:
        reason = "its credentials are not those of this server's key; set them again"
        raise UpstreamMisconfigured(route.name, reason) from None
    if username is None:
        return f"Bearer {secret}"
    return f"Basic {b64encode(f'{username}:{secret}'.encode()).decode('ascii')}"


def _with_secrets(config: Config, replace: Callable[[int, Config, str], str]) -> dict[str, Any]:
    """The configuration with each secret replaced; the function gets the index of the route, the route, and a key."""
    if "proxy" not in config:
        return dict(config)
    routes = [
        route
        if "auth" not in route
        else {
            **route,
            "auth": {
                key: replace(index, route, key) if key in SECRETS else value for key, value in route["auth"].items()
            },
        }
        for index, route in enumerate(config["proxy"]["routes"])
    ]
    return {**config, "proxy": {**config["proxy"], "routes": routes}}


def _stored(before: Config, route: Config, key: str, pointer: str) -> str:
    """The sealed secret of a route of ``before``; of several with the same context, that of the same URL if any."""
    found = [
        each
        for each in before.get("proxy", {}).get("routes", ())
        if key in each.get("auth", ()) and _context(each) == _context(route)
    ]
    if not found:
        raise Invalid(f"{MASK} stands for the stored {key}, and there is none for this address and user", pointer)
    same = next((each for each in found if each["url"] == route["url"]), found[0])
    return str(same["auth"][key])


def _context(route: Config) -> str:
    token_hosts = [each.lower() for each in route.get("token_hosts", ())]
    return _context_of(parse_url(route["url"]), route["auth"].get("username"), route.get("hosts", {}), token_hosts)


def _context_of(target: Target, username: str | None, hosts: Mapping[str, str], token_hosts: Sequence[str]) -> str:
    context = f"route {target.scheme}://{target.host}:{target.port} {username or ''}"
    # the token service of a registry gets the credentials where these say that it is
    if hosts:
        context += f" {sorted(hosts.items())}"
    return f"{context} {sorted(token_hosts)}" if token_hosts else context
