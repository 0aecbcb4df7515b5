"""Finds what would prevent a start. It creates nothing, opens nothing for writing, and does not listen."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping

from pkgrepo.composition.core import Core
from pkgrepo.composition.databases import reading
from pkgrepo.composition.issuers import make_documents, make_issuers
from pkgrepo.composition.tracing.setup import spans_module
from pkgrepo.config import Config
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.http.tls import BadCertificate, ServerCertificate
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.names import get_format
from pkgrepo.management.repositories.definitions import define
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.repositories.clock import seconds_of
from pkgrepo.repositories.policy.archive_addresses import ArchiveAddresses
from pkgrepo.sigstore.roots import root_of
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.people.users import find_user_by_name, has_users
from pkgrepo.storage.catalog.server.storages import find_storage

from .endpoints import endpoint_problem
from .provisioning import DEFAULT_STORAGE, declared_bucket, declared_repositories, find_named, no_member

_INTERFACE = re.compile(r":interface=((?:\\.|[^:\\])*)")


def start_problems(core: Core, config: Config) -> Iterator[str]:
    """A sentence for each problem, beginning with the setting. ``core`` must not be started."""
    for description in config.server.listen:
        problem = endpoint_problem(description, core.reactor) or _interface_problem(description)
        # systemd passes the socket to the server only, not to this process.
        if problem is not None and not description.startswith("systemd:"):
            yield problem
    yield from _certificate_problems(config)
    yield from _unusable_settings(config)
    if config.traces.endpoint:
        try:
            spans_module()
        except Invalid as error:
            yield f"traces.endpoint: {error}"
    if config.data.dir.exists() and not config.data.dir.is_dir():
        yield f"data.dir: {config.data.dir} is no folder"
    yield from _storage_problems(config)
    issuers = None
    try:
        found = make_issuers(config, make_documents(config, core.reactor), core.reactor)
        issuers = Issuers(found, seconds_of(core.clock))
    except Invalid as error:
        yield f"proxy.ca_file: {error}"
    try:
        with reading(config) as catalog:
            if issuers is not None:
                yield from _repository_problems(core, config, issuers, catalog)
            yield from _token_problems(config, catalog)
    except CatalogUnusable as error:
        yield f"database.url: {error}"


def _unusable_settings(config: Config) -> Iterator[str]:
    checks: Mapping[str, Callable[[], object]] = {
        "auth.trusted_root": lambda: root_of(config.auth.trusted_root),
        "proxy.source_archives": lambda: ArchiveAddresses.checked(config.proxy.source_archives),
    }
    for setting, check in checks.items():
        try:
            check()
        except Invalid as error:
            yield f"{setting}: {error}"


def _certificate_problems(config: Config) -> Iterator[str]:
    if config.tls.cert is not None and config.tls.key is not None:
        try:
            ServerCertificate(str(config.tls.cert), str(config.tls.key))
        except BadCertificate as error:
            yield f"tls.cert: {error}"


def _interface_problem(description: str) -> str | None:
    """Whether this machine lacks the address. The port is not checked: a running server may use it."""
    found = _INTERFACE.search(description)
    if found is None or not description.startswith(("tcp:", "tcp6:")):
        return None
    name = re.sub(r"\\(.)", r"\1", found[1])
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.bind(address)
    except OSError as error:
        return f"server.listen: {description}: this machine has no address {name!r}: {error.strerror}"
    return None


def _storage_problems(config: Config) -> Iterator[str]:
    for each in config.bootstrap.storages:
        if each.type == "S3":
            try:
                declared_bucket(each)
            except Invalid as error:
                yield f"bootstrap.storages: {each.name}: {error}"
        elif each.settings:
            yield f"bootstrap.storages: {each.name}: settings are those of a bucket, which has the type S3"


def _repository_problems(core: Core, config: Config, issuers: Issuers, catalog: Reader | None) -> Iterator[str]:
    declared = {name.casefold() for name in (DEFAULT_STORAGE, *(each.name for each in config.bootstrap.storages))}
    earlier: set[str] = set()
    try:
        repositories = declared_repositories(core, config)
    except Invalid as error:
        yield f"bootstrap.starter: {error}"
        repositories = [*config.bootstrap.repositories]
    for wanted in repositories:
        where = f"bootstrap.repositories: {wanted.storage}/{wanted.name}"
        stored = catalog is not None and find_storage(catalog, wanted.storage) is not None
        if not stored and wanted.storage.casefold() not in declared:
            yield f"{where}: there is no storage {wanted.storage!r}"
        try:
            format_ = get_format(core.formats, wanted.format)
            fixed, _ = define(format_, issuers, wanted.storage, wanted.name, wanted.config)
        except (Invalid, Conflict) as error:
            yield f"{where}: {error}"
            continue
        for name in fixed.get("members", ()):
            if name.casefold() not in earlier and (catalog is None or find_named(catalog, name) is None):
                yield f"{where}: {no_member(name)}"
        earlier.add(f"{wanted.storage}/{wanted.name}".casefold())


def _token_problems(config: Config, catalog: Reader | None) -> Iterator[str]:
    """Declared tokens of users that do not exist; the first admin counts, if the start will create it."""
    makes_admin = catalog is None or not has_users(catalog)
    for token in config.bootstrap.tokens:
        first = makes_admin and token.user.casefold() == config.bootstrap.admin.user.casefold()
        if not first and (catalog is None or find_user_by_name(catalog, token.user) is None):
            yield f"bootstrap.tokens: {token.name}: there is no user {token.user!r}"
