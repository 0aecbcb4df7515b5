"""
A repository is followed while both servers are killed at random moments: in the end both have the same.

The variable ``PKGREPO_TEST_CHANGES`` is the number of changes, for a longer run.
"""

from __future__ import annotations

import os
import random
import threading
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

import pytest
from attrs import Factory, define

from tests.server.replication.conftest import READER, READER_PASSWORD, Site, Sites, wait_for
from tests.support.forked_programs import run_pkgrepo
from tests.support.format_cases import CASES
from tests.support.format_cases.case import Case
from tests.support.ports import reserve_port
from tests.support.server_process import clean_environment, restarts

pytestmark = pytest.mark.faults

FORMATS = tuple(CASES)
OUT_WHEN_YANKED = ("ruby", "conda", "helm")
NAMES = ("demo", "left", "right")
CHANGES = int(os.environ.get("PKGREPO_TEST_CHANGES", "200"))
KILLS = max(4, CHANGES // 40)
JSON = "application/vnd.pypi.simple.v1+json"


@define
class Driver:
    """Changes a repository of each format at random. ``kept`` has the versions whose publish was acknowledged."""

    sites: Sites
    rng: random.Random
    names: dict[str, list[tuple[str, str]]] = Factory(lambda: {each: [] for each in FORMATS})
    kept: set[tuple[str, str, str]] = Factory(set)
    number: int = 0

    def change(self) -> None:
        """Make one change there. :raises OSError, HTTPException: the server was killed meanwhile"""
        repository = self.rng.choice(FORMATS)
        published = self.names[repository]
        kind = self.rng.choices(("publish", "yank", "unyank", "delete", "remove"), (12, 4, 1, 2, 0.3))[0]
        there = self.sites.there.client
        if kind == "publish" or not published:
            self.number += 1
            name, version = self.rng.choice(NAMES), f"1.{self.number}.0"
            case = CASES[repository]
            published.append((case.named(name), case.spelled(version)))
            reply = there.post_form(f"/api/repository/main%2F{repository}/upload", _form(case, name, version))
            assert reply.status == 200, reply.body
            self.kept.add((repository, *published[-1]))
            return
        name, version = self.rng.choice(published)
        address = f"/api/package/main%2F{repository}/{quote(name, safe='')}/versions/{version}"
        if kind == "remove":
            self.kept -= {each for each in self.kept if each[:2] == (repository, name)}
            reply = there.ask("DELETE", f"/api/package/main%2F{repository}/{quote(name, safe='')}")
        elif kind == "delete":
            self.kept.discard((repository, name, version))
            reply = there.ask("DELETE", address)
        else:
            reply = there.post_json(f"{address}/{kind}", {"reason": f"because of {self.number}"})
        # What some formats have no way to do, such as to yank a file, is refused.
        assert reply.status in (200, 404) or (reply.status == 422 and "yank" in kind), (repository, kind, reply)


def test_both_have_the_same_in_the_end(tmp_path_factory: pytest.TempPathFactory) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    with ExitStack() as stack:
        sites = Sites(*(_site(stack, tmp_path_factory, name) for name in ("there", "here")))
        sites.there.api("POST", "/users", {"username": READER, "password": READER_PASSWORD})
        for each in FORMATS:
            sites.pair(each, each, files=["*"])
        driver = Driver(sites, rng)
        killed = set(rng.sample(range(CHANGES), KILLS))
        for number in range(CHANGES):
            if number not in killed:
                driver.change()
                continue
            site = rng.choice((sites.there, sites.here))
            killer = threading.Timer(rng.random() * 0.05, site.process.kill)  # while the change is made, or just after
            killer.start()
            with suppress(OSError, HTTPException):
                driver.change()
            killer.join()
            site.again()
        for site in (sites.here, sites.there):
            site.process.kill()
        sites.there.again()
        sites.here.again()  # which has no pauses after failures
        for each in FORMATS:
            file, data, fields = CASES[each].sent("last", "1.0.0")
            sites.there.upload(each, file, data, **fields)
            wait_for(partial(_has_last, sites.here, each))  # so that all events before were read
            sites.settled(each)
            known = {key for site in (sites.there, sites.here) for key, _ in _all_versions(site, each)}
            states = [_state(site, each, known) for site in (sites.there, sites.here)]
            for there, here in zip(*states, strict=True):
                differ = {key for key in {*there} | {*here} if _at(there, key) != _at(here, key)}
                assert not differ, (each, seed, [(key, _at(there, key), _at(here, key)) for key in differ])
            assert {key[1:] for key in driver.kept if key[0] == each} <= _versions(sites.there, each), seed
            _check_bytes(sites, each)
        for site in (sites.here, sites.there):
            site.process.stop()
            options = ["--set", f"data.dir={site.process.folder / 'data'}", "verify"]
            done = run_pkgrepo(*options, environ=clean_environment(), folder=site.process.folder)
            assert done.returncode == 0, (seed, done.stdout + done.stderr)


def _has_last(site: Site, name: str) -> bool:
    last, first = quote(CASES[name].named("last"), safe=""), CASES[name].spelled("1.0.0")
    return site.client.get(f"/api/package/main%2F{name}/{last}/versions/{first}").status == 200


def _form(case: Case, name: str, version: str) -> list[Any]:
    file, data, fields = case.sent(name, version)
    return [*fields.items(), ("file", file, data)]


def _site(stack: ExitStack, folders: pytest.TempPathFactory, name: str) -> Site:
    """A server that keeps its port when it is started again."""
    port, reserved = reserve_port()
    stack.callback(reserved.close)
    environ = {
        "PKGREPO_PROXY__ALLOW_PRIVATE": '["127.0.0.1"]',
        "PKGREPO_SERVER__LISTEN": f"tcp:{port}:interface=127.0.0.1",
    }
    return Site(stack.enter_context(restarts(folders.mktemp(name), environ=environ)))


def _listed(site: Site, path: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        page = site.api("GET", f"{path}?limit=1000{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def _all_versions(site: Site, name: str) -> dict[tuple[str, str], Any]:
    keys = [each["key"] for each in _listed(site, f"/repository/main%2F{name}/packages")]
    return {
        (key, each["version"]): site.api("GET", f"{place}/{each['version']}")
        for key in keys
        for place in [f"/package/main%2F{name}/{quote(key, safe='')}/versions"]
        for each in _listed(site, place)
    }


def _is_out(name: str, found: Any) -> bool:
    """Whether a version is in no list that clients read: if it was yanked before it was fetched, it is not here."""
    return name in OUT_WHEN_YANKED and found["state"] == "yanked"


def _versions(site: Site, name: str) -> set[tuple[str, str]]:
    return {*_all_versions(site, name)}


def _state(site: Site, name: str, known: set[str]) -> Any:
    """
    What a server has: states and files of versions, names that are taken, documents.

    Of a gem that was yanked before it was fetched the replica has the taken name alone; see L{_is_out}. ``known`` are
    the packages that either server has.
    """
    versions = _all_versions(site, name)
    taken = {
        (each["path"] or f"package {each['package']}", each["sha256"])
        for each in _listed(site, f"/repository/main%2F{name}/deleted-names")
        if each["path"] or each["package"] not in known
    }
    shown = [found for found in versions.values() if name == "ruby" or not _is_out(name, found)]
    files = {(each["path"], each["digests"]["sha256"]) for found in shown for each in found["files"]}
    hidden = {each for each in files if each[0].startswith(".yanked/")}
    states = {
        key: (found["state"], found["reason"], sorted(found["tags"]))
        for key, found in versions.items()
        if not _is_out(name, found)
    }
    documents = {key: _document(site, name, key) for key in NAMES}
    # the name of a gem is taken at either of its paths
    names = {(path.removeprefix(".yanked/"), sha256) for path, sha256 in taken | hidden}
    return states, files - hidden, names, documents


def _at(found: Any, key: Any) -> Any:
    return found.get(key) if isinstance(found, dict) else key in found


def _document(site: Site, name: str, package: str) -> Any:
    """What clients read of a package, without what is the server's own."""
    match name:
        case "npm":
            reply = site.client.get(f"/repositories/main/npm/{package}")
            if reply.status != 200:
                return reply.status
            found = {text: (each["dist"]["integrity"], each.get("deprecated")) for text, each in _of(reply, "versions")}
            return found, reply.json["dist-tags"]
        case "python":
            reply = site.client.get(f"/repositories/main/python/simple/{package}/", Accept=JSON)
            if reply.status != 200:
                return reply.status
            return {each["filename"]: (each["hashes"]["sha256"], each["yanked"]) for each in reply.json["files"]}
        case "ruby":
            reply = site.client.get(f"/repositories/main/ruby/info/{package}")
            return (reply.status, sorted(reply.text.splitlines()[1:]) if reply.status == 200 else [])
        case _:
            case = CASES[name]
            reply = site.client.get(f"/repositories/main/{name}{case.document_of(package)}")
            listed = {each for each in range(CHANGES + 1) if case.listing(package, f"1.{each}.0") in reply.body}
            return reply.status, listed


def _of(reply: Any, name: str) -> Any:
    return reply.json[name].items()


def _check_bytes(sites: Sites, name: str) -> None:
    """The files are served byte by byte as there; what nobody gets there nobody gets here."""
    there, here, top = sites.there.client, sites.here.client, f"/repositories/main/{name}"
    for found in _all_versions(sites.there, name).values():
        for each in found["files"] if name == "ruby" or not _is_out(name, found) else ():
            path = each["path"].removeprefix(".yanked/")
            first, second = there.get(f"{top}/{path}"), here.get(f"{top}/{path}")
            assert (first.status, first.body) == (second.status, second.body), path
            assert (first.status == 200) is (path == each["path"]), path
