"""
Creates at a start what is missing: the default storage, the first admin, and the declared objects.

Existing objects are not changed, so that a configuration file can stay in place. The key for stored credentials, a file
in the data folder of each node, must be the same on all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec
from twisted.logger import Logger

from pkgrepo.auth.accounts import ensure_admin
from pkgrepo.auth.login.passwords import generate_password
from pkgrepo.composition.core import KEY_FILE, Core
from pkgrepo.config import BootstrapRepository, BootstrapStorage, BootstrapToken, Config
from pkgrepo.errors import Conflict, Invalid, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.names import get_format
from pkgrepo.management.repositories.definitions import define, make_repository
from pkgrepo.management.storages.places import make_bucket, place_of
from pkgrepo.management.storages.schema import StorageSettings
from pkgrepo.model import Action, Repository, RepositoryScope, TokenKind, TokenLimits, Visibility
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.proxy.definitions import seal_credentials, with_member_ids
from pkgrepo.repositories.clock import from_ms
from pkgrepo.s3.places import BucketPlace
from pkgrepo.storage.blobs.paths import find_storage_id
from pkgrepo.storage.buckets import KIND
from pkgrepo.storage.catalog.people import tokens, users
from pkgrepo.storage.catalog.server import repositories, settings, stages, storages
from pkgrepo.storage.catalog.server.trash import put_kept_days

log = Logger()

DEFAULT_STORAGE = "main"


async def prepare(core: Core, config: Config, issuers: Issuers) -> str | None:
    """
    Create storages, the first admin, and the declared repositories and tokens. ``issuers`` are those of pipelines.

    Returns the admin's password if it was generated just now, else None.

    :raises Invalid: a declared object is invalid
    """
    await core.catalog.write(put_kept_days, config.retention.trash_days)
    await core.catalog.write(stages.put_kept_days, config.retention.stage_days)
    await ensure_storages(core, config)
    password = await _ensure_admin(core, config)
    now_ms = core.clock.now_ms()
    for repository in declared_repositories(core, config):
        await core.registry.refresh()  # which repository is the default depends on the ones before
        await core.catalog.write(_ensure_repository, repository, core, issuers, now_ms)
    await core.companions.ensure_all(core.catalog, now_ms)
    for token in config.bootstrap.tokens:
        await core.catalog.write(_ensure_token, token, now_ms)
    return password


async def ensure_storages(core: Core, config: Config, *, take_over: bool = False) -> None:
    """
    Create the default storage and the declared ones, and open all.

    With ``take_over``, storages of lost catalogs are assigned to this catalog.

    :raises PkgrepoError: one of them cannot be used
    """
    for each in config.bootstrap.storages:
        if each.type == "S3":
            await _ensure_bucket(core, each)
    declared = declared_storages(config)
    if take_over:
        await core.registry.refresh()
        present = {each.name: core.folders.folder(each) for each in core.registry.storages() if each.is_local}
        for name, path in (declared | present).items():
            if await core.pools.disk(find_storage_id, path) is not None:
                await core.pools.disk(core.folders.take_over, name, path)
    plain = {each.name for each in config.bootstrap.storages if not each.readable_layout}
    for name, path in declared.items():
        if await core.catalog.look(storages.find_storage, name) is not None:
            continue
        found = await core.pools.disk(find_storage_id, path)
        uid = await core.pools.disk(core.folders.make, name, path)
        settings = {"path": core.folders.spell(path), **({"readable_layout": False} if name in plain else {})}
        added = await core.catalog.write(_add_storage, name, settings, uid, core.clock.now_ms())
        if added and found is not None and not take_over:
            log.warn(
                "storage {name} at {path} is of an earlier catalog; pkgrepo reindex takes in what it holds",
                name=name,
                path=str(path),
            )
    await core.open_storages()


def declared_storages(config: Config) -> dict[str, Path]:
    """The folders of the default storage and of the declared ones, by name; without those in buckets."""
    new = config.data.storages or config.data.dir / "storages"
    wanted = {DEFAULT_STORAGE: new / DEFAULT_STORAGE}
    for each in config.bootstrap.storages:
        wanted[each.name] = each.path or new / each.name
    buckets = {each.name for each in config.bootstrap.storages if each.type == "S3"}
    return {name: path for name, path in wanted.items() if name not in buckets}


def declared_bucket(declared: BootstrapStorage) -> BucketPlace:
    """The place of a declared storage of type S3. :raises Invalid: its settings are not valid"""
    if declared.path is not None:
        raise Invalid("a storage of type S3 has no path")
    try:
        settings = msgspec.convert(declared.settings, StorageSettings)
    except msgspec.ValidationError as error:
        raise Invalid(f"settings: {error}") from error
    if settings.access_key_id is not None or settings.secret_access_key is not None:
        raise Invalid(
            "settings: the access key belongs in the environment, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return place_of(settings)


async def _ensure_bucket(core: Core, declared: BootstrapStorage) -> None:
    """Add a storage in a bucket. Its id follows from that of the catalog, so that all nodes may do so at a time."""
    if await core.catalog.look(storages.find_storage, declared.name) is not None:
        return
    place = declared_bucket(declared)
    server = await core.catalog.look(settings.server_uid)
    uid = str(uuid5(NAMESPACE_OID, f"{server} {declared.name}"))
    store = await make_bucket(core.buckets, declared.name, place, uid)
    await store.stop()
    found = core.buckets.settings(place)
    await core.catalog.write(_add_storage, declared.name, found, uid, core.clock.now_ms(), kind=KIND)


def _add_storage(
    tx: Transaction, name: str, settings: Mapping[str, Any], uid: str, now_ms: int, *, kind: str = "Local"
) -> bool:
    """Add a storage, unless another process created it meanwhile. Returns whether it was added."""
    if storages.find_storage(tx, name) is not None:
        return False
    storages.add_storage(tx, name=name, kind=kind, settings=settings, now_ms=now_ms, uid=uid)
    return True


async def _ensure_admin(core: Core, config: Config) -> str | None:
    if await core.catalog.look(users.has_users):
        return None
    admin = config.bootstrap.admin
    if config.compat.open_install and admin.password is None and admin.password_hash is None:
        return None  # the first caller creates one through the API
    if admin.password_hash is not None:
        generated, hashed = None, admin.password_hash.reveal()
    elif admin.password is not None:
        generated, hashed = None, await core.passwords.hash(admin.password.reveal())
    else:
        generated = generate_password()
        hashed = await core.passwords.hash(generated)
    added = await core.catalog.write(ensure_admin, admin.user, hashed, now_ms=core.clock.now_ms())
    return generated if added is not None else None


def _ensure_repository(tx: Transaction, wanted: BootstrapRepository, core: Core, issuers: Issuers, now_ms: int) -> None:
    where = f"bootstrap.repositories: {wanted.storage}/{wanted.name}"
    storage = storages.find_storage(tx, wanted.storage)
    if storage is None:
        raise Invalid(f"{where}: there is no storage {wanted.storage!r}")
    if find_named(tx, f"{storage.name}/{wanted.name}") is not None:
        return
    try:
        format_ = get_format(core.formats, wanted.format)
        fixed, own = define(format_, issuers, storage.name, wanted.name, wanted.config)
        make_repository(
            tx,
            storage,
            format_.name,
            wanted.name,
            default=core.images.pinned_default,
            companions=core.companions,
            visibility=Visibility(wanted.visibility),
            description=wanted.description,
            active=True,
            config=seal_credentials(with_member_ids(fixed, partial(_get_member, tx)), core.secrets),
            settings=own,
            now_ms=now_ms,
        )
    except Invalid as error:
        raise Invalid(f"{where}: {error}") from None
    except Conflict as error:
        raise Conflict(f"{where}: {error}") from None


def declared_repositories(core: Core, config: Config) -> list[BootstrapRepository]:
    """The repositories that are declared, and those of the starter set. :raises Invalid: there is no such format"""
    declared = config.bootstrap
    if not declared.starter:
        return [*declared.repositories]
    # With it come routes of the API.
    from pkgrepo.management.repositories.starter import (  # noqa: PLC0415
        starter_formats,
        starter_set,
        upstream_of,
    )

    found = starter_formats(core.formats, declared.starter, {})
    starters = (
        each
        for format_ in found
        for each in starter_set(format_, DEFAULT_STORAGE, upstream_of(core.formats, declared.upstreams, format_))
    )
    return [
        *declared.repositories,
        *(
            BootstrapRepository(name=each.name, format=each.format, description=each.description, config=each.config)
            for each in starters
        ),
    ]


def find_named(r: Reader, path: str) -> Repository | None:
    """The repository at a path storage/name, or None."""
    storage, _, name = path.casefold().partition("/")
    return repositories.find_by_path(r, storage, name)


def no_member(name: str) -> str:
    """The sentence about a member of a declared virtual repository that does not exist."""
    return f"there is no repository {name!r}; declare members before the virtual repository"


def _get_member(tx: Transaction, name: str, pointer: str) -> Repository:
    found = find_named(tx, name)
    if found is None:
        raise Invalid(no_member(name), pointer)
    return found


def _ensure_token(tx: Transaction, wanted: BootstrapToken, now_ms: int) -> None:
    where = f"bootstrap.tokens: {wanted.name}"
    user = existing(users.find_user_by_name(tx, wanted.user), "user", f"{wanted.user} ({where})")
    if wanted.hash is None:
        raise Invalid(f"{where}: it has neither hash nor file")
    digest = bytes.fromhex(wanted.hash)
    if tokens.find_token_by_hash(tx, digest) is not None:
        return
    expires_at = None if wanted.expires_days is None else from_ms(now_ms) + timedelta(days=wanted.expires_days)
    limits = TokenLimits(
        scopes=frozenset(wanted.scopes),
        repositories=tuple(
            RepositoryScope(each.repository, frozenset(Action(action) for action in each.actions))
            for each in wanted.repositories
        ),
        packages=tuple(wanted.packages),
        expires_at=expires_at,
    )
    tokens.add_token(
        tx,
        user_id=user.id,
        hash=digest,
        shown="declared",
        kind=TokenKind.PERSONAL,
        name=wanted.name,
        limits=limits,
        created_from="configuration",
        now_ms=now_ms,
    )


async def check_key(core: Core) -> None:
    """
    Compare the key with that of the nodes that run. A node that runs alone decides which one counts from now on.

    :raises Conflict: it is another one
    """
    own = core.secrets.fingerprint
    before = await core.catalog.look(settings.get, settings.CREDENTIALS_KEY)
    if own == await core.catalog.write(settings.ensure_credentials_key, own, alone=core.alone):
        if before not in (None, own):
            log.warn("{key} is not the key of the last run; credentials sealed with that one are lost", key=KEY_FILE)
        return
    path = core.config.data.dir / KEY_FILE
    raise Conflict(f"{path} is not the key of the other nodes: copy that file from the data folder of one of them")
