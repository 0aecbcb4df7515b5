"""Check everything that a server depends on, before its start or while it runs."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import attrs
import click
from attrs import define, field
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react
from twisted.internet.threads import deferToThread

from pkgrepo.client.terminal import printable
from pkgrepo.commands.offline import check_owner
from pkgrepo.commands.settings import Sources
from pkgrepo.composition.core import KEY_FILE, SPOOL, Core
from pkgrepo.composition.databases import reading
from pkgrepo.composition.issuers import make_documents, make_issuers, make_providers
from pkgrepo.composition.upstreams import upstream_settings
from pkgrepo.config import Config
from pkgrepo.errors import DirectoryUnavailable, Invalid, IssuerUnavailable, PkgrepoError
from pkgrepo.model import Repository, RepositoryType, Storage
from pkgrepo.oidc.issuers import DISCOVERY
from pkgrepo.proxy.checks import check_routes
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.repositories.advisories.known import judge
from pkgrepo.sentences import sentence_of
from pkgrepo.startup.checks import start_problems
from pkgrepo.startup.extras import missing_extras
from pkgrepo.startup.host_checks import OK, PROBLEM, WARNING, Finding, host_findings, room
from pkgrepo.storage.buckets import StorageBuckets
from pkgrepo.storage.catalog.advisories import AdvisoryLoad, find_load
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import TAKE_OVER, UNRELEASED, find_damage, load_schema, schema_version
from pkgrepo.storage.catalog.server.repositories import all_repositories
from pkgrepo.storage.catalog.server.storages import list_storages
from pkgrepo.storage.secret_box import KEY_BYTES, SecretBox

COLOURS = {OK: "green", WARNING: "yellow", PROBLEM: "red"}
DAMAGED = "stop the server, restore a backup, or move the file away and run pkgrepo reindex"


@define
class Stored:
    """What the catalog names, as far as it can be read: with an older schema nothing before the next start."""

    schema: int | None = None
    advisories: AdvisoryLoad | None = None
    storages: list[Storage] = field(factory=list)
    repositories: list[Repository] = field(factory=list)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list.")
@click.option("--offline", is_flag=True, help="Ask no upstreams, directories, identity providers and name servers.")
@click.pass_obj
def doctor(sources: Sources, *, as_json: bool, offline: bool) -> None:
    """
    Check configuration, rights, disks, clock, memory, database, advisories, buckets, upstreams, directories,
    identity providers, certificate and unit.

    Prints a line for each, with what to do about it. Nothing is changed, and a server may run. Exit code 1 if there is
    a problem; 0 with warnings alone.
    """
    config = sources.read()
    check_owner(config.data.dir)
    found = [*_configuration(config), *host_findings(config)]
    if not config.origins and not config.data.dir.exists():
        advice = "give its settings (--config FILE, or variables), or go to the folder where it is started"
        found.append(Finding("server", PROBLEM, f"there is none: no settings, and no folder {config.data.dir}", advice))
    stored = Stored()
    found += _database(config, stored)
    found += _advisories(config, stored)

    async def ask(_reactor: object) -> None:
        found.extend(await _places(config, stored))
        if not offline:
            found.extend(await _names(stored))
            found.extend(await _upstreams(config, stored))
            found.extend(await _directories(config))
            found.extend(await _issuers(config))

    def finish(_result: object) -> None:
        _print(found, as_json=as_json)
        sys.exit(1 if any(each.state == PROBLEM for each in found) else 0)

    react(lambda reactor: Deferred.fromCoroutine(ask(reactor)).addCallback(finish))


def _print(found: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([attrs.asdict(each) for each in found], indent=2))
        return
    width = max(len(each.subject) for each in found)
    for each in found:
        click.echo(f"{click.style(f'{each.state:7}', COLOURS[each.state])}  {each.subject:{width}}  {each.sentence}")
        if each.advice:
            click.echo(f"{'':{width + 11}}-> {each.advice}")


def _configuration(config: Config) -> list[Finding]:
    try:
        # What is wrong with the database is a finding of its own.
        problems = [each for each in start_problems(Core(config, reactor), config) if not each.startswith("database.")]
    except CatalogUnusable:
        problems = []
    except OSError as error:
        problems = [sentence_of(error)]
    try:
        extras = list(missing_extras(config))
    except CatalogUnusable:
        extras = []  # which is a finding about the database
    found = [Finding("configuration", PROBLEM, each, "see pkgrepo check-config --explain") for each in problems]
    if extras:
        advice = f'pip install "pkgrepo[{",".join(extras)}]"'
        found.append(Finding("libraries", PROBLEM, f"not installed: {', '.join(extras)}", advice))
    return found or [Finding("configuration", OK, "the settings and what they name are valid")]


def _database(config: Config, stored: Stored) -> list[Finding]:
    known = load_schema().version
    try:
        with reading(config) as catalog:
            if catalog is None:
                return [Finding("database", OK, "there is none yet; the first start makes it")]
            stored.schema = schema_version(catalog, is_sqlite=config.database_path is not None)
            stored.storages = list_storages(catalog)
            stored.repositories = all_repositories(catalog)
            if stored.schema == known:  # older ones have no table of them
                stored.advisories = find_load(catalog)
            damage = find_damage(catalog) if config.database_path is not None else ""
            if damage:
                return [Finding("database", PROBLEM, f"{config.database_path} is damaged: {damage}", DAMAGED)]
    except CatalogUnusable as error:
        advice = DAMAGED if "malformed" in str(error) else "check database.url, the password and the rights"
        return [Finding("database", PROBLEM, str(error), advice)]
    if (other := _other_schema(stored.schema, known)) is not None:
        return [other]
    own = [each for each in stored.repositories if each.parent is None]  # without companions and stages
    counts = f"storages: {len(stored.storages)}, repositories: {len(own)}"
    return [Finding("database", OK, f"it answers, with schema {stored.schema}; {counts}")]


def _other_schema(found: int | None, known: int) -> Finding | None:
    """What is to be said of a catalog that does not have the schema of this version."""
    if found is None or found == known:
        return None
    if found in UNRELEASED:
        sentence = f"it was written by a version before the first release (schema {found})"
        return Finding("database", PROBLEM, sentence, TAKE_OVER)
    if found > known:
        sentence = f"it was written by a newer version (schema {found}; this one knows {known})"
        return Finding("database", PROBLEM, sentence, "install that version, or restore a copy from before")
    return Finding(
        "database", WARNING, f"the next start upgrades it from schema {found} to {known}", "make a backup first"
    )


def _advisories(config: Config, stored: Stored) -> list[Finding]:
    """Whether the advisories are loaded, and young enough."""
    source = config.advisories.source
    if not source or stored.schema is None:
        return []
    state = judge(stored.advisories, source, config.advisories.max_age_s, int(time.time() * 1000))
    if state.problem:
        advice = "look at the last job of the kind advisories: pkgrepo jobs list, and at what writes the export"
        return [Finding("advisories", WARNING, state.problem, advice)]
    counts = ", ".join(f"{count} of {name}" for name, count in sorted(state.records.items()))
    skipped = f"; {state.unreadable} could not be read, see the log" if state.unreadable else ""
    return [Finding("advisories", OK, f"{counts or 'none'}, exported {state.exported_at:%Y-%m-%d %H:%M} UTC{skipped}")]


async def _places(config: Config, stored: Stored) -> list[Finding]:
    """The folders and buckets of the storages."""
    found = []
    core = Core(config, reactor)
    core.pools.start()
    try:
        for each in stored.storages:
            subject = f"storage {each.name}"
            if not each.is_local:
                found.append(await _bucket(core, each, subject))
                continue
            folder = config.data.dir / each.settings["path"]
            if folder.is_dir():
                found.append(room(config, subject, folder))
            else:
                advice = "mount it, or name its new place: pkgrepo storage move"
                found.append(Finding(subject, PROBLEM, f"its folder {folder} is not there", advice))
    finally:
        await core.pools.stop()
    return found


async def _bucket(core: Core, storage: Storage, subject: str) -> Finding:
    advice = "check its address, its access key (pkgrepo storage edit) and the rights of that"
    folder = core.config.data.dir
    if not (folder / KEY_FILE).exists():
        return Finding(subject, PROBLEM, f"{folder / KEY_FILE} is missing", "restore it from a backup")
    try:
        secrets = SecretBox.load(folder / KEY_FILE)
        low = core.config.data.low_water
        buckets = StorageBuckets(secrets=secrets, pools=core.pools, spool=folder / SPOOL, low_water=low)
        store = await buckets.open(storage)
        await store.stop()
    except (PkgrepoError, OSError) as error:
        return Finding(subject, PROBLEM, str(error), advice)
    return Finding(subject, OK, f"its bucket answers: {storage.settings['endpoint']}/{storage.settings['bucket']}")


def _proxies(stored: Stored) -> list[Repository]:
    return [each for each in stored.repositories if each.type is RepositoryType.PROXY]


async def _names(stored: Stored) -> list[Finding]:
    """Whether the host names of upstreams and buckets resolve; not those that an HTTP proxy would resolve."""
    if {"http", "https"} & getproxies_environment().keys():
        return []
    urls = [route.url for each in _proxies(stored) for route in proxy_config_of(each).routes]
    urls += [each.settings["endpoint"] for each in stored.storages if not each.is_local]
    hosts = sorted({host for each in urls if (host := urlsplit(each).hostname)})
    answers: list[Finding] = await gatherResults([deferToThread(_resolve, each) for each in hosts])
    failed = [each for each in answers if each.state != OK]
    if hosts and not failed:
        return [Finding("names", OK, f"the names of upstreams and buckets have addresses: {len(hosts)}")]
    return failed


def _resolve(host: str) -> Finding:
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        advice = "check /etc/resolv.conf and the name in the route"
        return Finding("names", PROBLEM, f"{host} has no address: {error.strerror or error}", advice)
    return Finding("names", OK, host)


async def _upstreams(config: Config, stored: Stored) -> list[Finding]:
    """Ask all routes of proxies, like the check of a repository by the API."""
    proxies = _proxies(stored)
    if not proxies:
        return []
    core = Core(config, reactor)
    settings = upstream_settings(config.proxy, getproxies_environment())
    key = config.data.dir / KEY_FILE
    box = SecretBox.load(key) if key.exists() else SecretBox(bytes(KEY_BYTES))  # which opens nothing
    clients = Upstreams(settings, reactor, authorize=lambda route: authorization_of(route, box))
    work: list[Any] = []
    for each in proxies:
        format_ = core.formats[each.format]
        work.append(Deferred.fromCoroutine(check_routes(clients, each, format_.probes, format_.authorize)))
    found = []
    try:
        for repository, checks in zip(proxies, await gatherResults(work), strict=True):
            for each in checks:
                advice = "" if each.ok else "see pkgrepo explain, and the page of the repository in the console"
                state = OK if each.ok else WARNING
                sentence = printable(f"{each.sentence} ({each.route.url})")
                found.append(Finding(f"{repository.path} {each.route.name}", state, sentence, advice))
    finally:
        await clients.close()
    return found


async def _directories(config: Config) -> list[Finding]:
    """Log in at all servers of all directories as the server does, and search people and groups."""
    if not config.auth.ldap:
        return []
    from pkgrepo.composition.directories import make_each_server  # noqa: PLC0415 - a library that few servers need

    found = []
    try:
        servers = [*make_each_server(config, reactor)]
    except Invalid as error:
        return [Finding("directories", PROBLEM, str(error), "correct the file, or its rights")]
    for url, each in servers:
        subject = f"directory {each.name}"
        try:
            found.append(Finding(subject, OK, f"{await each.check()} ({url})"))
        except DirectoryUnavailable as error:
            advice = f"check auth.ldap.{each.name}, and what ldapsearch says with the same values"
            found.append(Finding(subject, PROBLEM, printable(f"{error.reason} ({url})"), advice))
        finally:
            each.close()
    return found


async def _issuers(config: Config) -> list[Finding]:
    """Whether identity providers and issuers give their configuration and keys, and know the scopes of the settings."""
    documents, found = make_documents(config, reactor), []
    try:
        asked = [("provider", "oidc", each.issuer, each.scopes) for each in make_providers(config, documents, reactor)]
        asked += [("issuer", "issuers", each, ()) for each in make_issuers(config, documents, reactor)]
        for kind, section, issuer, scopes in asked:
            subject, setting = f"{kind} {issuer.name}", f"auth.{section}.{issuer.name}"
            try:
                known = (await issuer.metadata()).get("scopes_supported")
            except IssuerUnavailable as error:
                advice = f"check {setting}, and what curl says of {issuer.url.rstrip('/')}{DISCOVERY}"
                found.append(Finding(subject, PROBLEM, printable(f"{error.reason} ({issuer.url})"), advice))
                continue
            missing = [each for each in scopes if isinstance(known, list) and each not in known]
            if missing:
                sentence = f"it does not list what is asked for: {', '.join(missing)} ({issuer.url})"
                advice = f"make these scopes there, or take them out of {setting}.scopes: it may refuse all logins"
                found.append(Finding(subject, WARNING, sentence, advice))
            else:
                found.append(Finding(subject, OK, f"it gives its configuration and keys ({issuer.url})"))
    except Invalid as error:
        found.append(Finding("providers", PROBLEM, str(error), "correct the file, or its rights"))
    finally:
        await documents.close()
    return found
