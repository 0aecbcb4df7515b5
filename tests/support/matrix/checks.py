"""What clients get of a specimen while a rule holds: in files, in documents and in lists."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from attrs import evolve

from tests.support.matrix.kinds import RuleKind
from tests.support.matrix.specimens import BAD, LICENCES, SHARD, Item, Specimen, plain

REASON = "known to be bad"
MALWARE = "MAL-2026-evil"
STORED = ("hosted", "around")


class World(Protocol):
    """Servers with specimens, see L{MatrixWorld}."""

    async def repository(self, specimen: Specimen, kind: str) -> str: ...

    async def ask(self, name: str, method: str, path: str, *, agent: str = "") -> Any: ...

    async def set_rules(self, name: str, *rules: Any) -> None: ...

    async def settle(self) -> None: ...


async def read(world: World, name: str, path: str) -> Any:
    """The answer with a document, which may have to be found through another one."""
    if not path.startswith(SHARD):
        return await world.ask(name, "GET", path)
    folder = path.removeprefix(SHARD)
    found = await world.ask(name, "GET", f"{folder}/repodata_shards.msgpack.zst")
    digest = msgspec.msgpack.decode(plain(found.body))["shards"].get("evil-tool")
    if digest is None:
        return evolve(found, body=b"")
    return await world.ask(name, "GET", f"{folder}/shards/{digest.hex()}.msgpack.zst")


def documents_of(specimen: Specimen, kind: str) -> list[str]:
    """The documents that repositories of a kind have."""
    every = (*specimen.documents, *specimen.newest)
    return [each for each in every if kind == "hosted" or each not in specimen.only_hosted]


def files_of(item: Item, kind: str, rule: RuleKind | None = None) -> tuple[str, ...]:
    """The paths of a file; those beside it are of no file that a digest could name."""
    beside = item.beside if kind == "hosted" and (rule is None or not rule.by_bytes) else ()
    return (*item.paths, *beside)


async def check_files(
    world: World, specimen: Specimen, name: str, kind: str, rule: RuleKind, reason: str = REASON
) -> None:
    """Each file is refused with the reason, or sent, at its first request and at later ones."""
    for item in specimen.items:
        refused = rule.refuses(specimen, item)
        for path in files_of(item, kind, rule):
            for method in ("GET", "HEAD", "GET"):
                reply = await world.ask(name, method, path)
                if not refused:
                    assert reply.status == 200, (method, path, reply.body)
                    continue
                assert reply.status == 403, (method, path, reply.status, reply.body[:200])
                assert method == "HEAD" or reason.encode() in reply.body, (path, reply.body)


async def check_documents(world: World, specimen: Specimen, name: str, kind: str, rule: RuleKind) -> None:
    """Each document names what is served, and nothing else."""
    shown = [each for each in specimen.items if not rule.refuses(specimen, each)]
    hidden = [each for each in specimen.items if rule.refuses(specimen, each)]
    for path in documents_of(specimen, kind):
        reply = await read(world, name, path)
        if reply.status == 404 and path in specimen.withheld:
            continue
        if reply.status != 200:
            assert not shown, (path, reply.status, reply.body)
            assert reply.status in (403, 404, 451), (path, reply.status, reply.body)
            continue
        text = plain(reply.body)
        for each in hidden:
            assert each.marker not in text, (path, each.marker, text[:2000])
        wanted = shown if path in specimen.documents else shown[-1:]
        if path in specimen.of_upstream and kind not in STORED and hidden:
            wanted = []
        for each in wanted:
            assert each.marker in text, (path, each.marker, text[:2000])
    if specimen.held:
        await check_held(world, specimen, name, rule)


async def check_held(world: World, specimen: Specimen, name: str, rule: RuleKind) -> None:
    """What is held is listed as such, with the reason, where no file of its version is served, and refused."""
    reply = await world.ask(name, "GET", specimen.held, agent=specimen.agent)
    assert reply.status == 200, reply.body
    refused = {each.marker.decode(): rule.refuses(specimen, each) for each in specimen.items}
    open_ = {each.version for each in specimen.items if not rule.refuses(specimen, each)}
    listed = {each["filename"]: each for each in reply.json["files"]}
    assert listed.keys() == {
        each.marker.decode() for each in specimen.items if each.version not in open_ or not rule.refuses(specimen, each)
    }
    assert {*reply.json["versions"]} == {each.version for each in specimen.items}
    for each, found in listed.items():
        assert (each, any(why in str(found["yanked"]) for why in (REASON, MALWARE))) == (each, refused[each])
        for url in [found["url"], f"{found['url']}.metadata"] if refused[each] else []:
            for method in ("GET", "HEAD"):
                told = await world.ask(name, method, url.removeprefix("../.."), agent=specimen.agent)
                assert told.status == 403 or (told.status == 404 and url.endswith(".gz.metadata")), (url, told.status)


async def check_abouts(world: World, specimen: Specimen, name: str, rule: RuleKind) -> None:
    """A document about one version names what is served of it, and is refused if that is nothing."""
    for version in LICENCES:
        items = [each for each in specimen.items if each.version == version]
        for path in (each.format(version, digest=items[0].digests()[0]) for each in specimen.abouts):
            reply = await world.ask(name, "GET", path)
            if all(rule.refuses(specimen, each) for each in items):
                assert reply.status in (200, 403, 404, 451), (path, reply.status, reply.body)
                assert reply.status != 200 or not any(each.marker in reply.body for each in items), (path, reply.body)
                continue
            assert reply.status == 200, (path, reply.status, reply.body)
            for each in items:
                assert (path, each.marker in reply.body) == (path, not rule.refuses(specimen, each))


async def fetch_all(world: World, specimen: Specimen, name: str, kind: str) -> None:
    """Fetch everything without rules; all of it is there, so that what is not there later was hidden."""
    for item in specimen.items:
        for path in files_of(item, kind):
            reply = await world.ask(name, "GET", path)
            assert reply.status == 200, (path, reply.status, reply.body)
    for path in documents_of(specimen, kind):
        reply = await read(world, name, path)
        assert reply.status == 200, (path, reply.status, reply.body)
        markers = {each.marker for each in specimen.items if each.version == BAD or path in specimen.documents}
        assert all(each in plain(reply.body) for each in markers), (path, plain(reply.body)[:2000])


async def check_malware(world: World, specimen: Specimen, kind: str, rule: RuleKind) -> None:
    """Take every road out of a new repository, which nobody gave a rule."""
    name = await world.repository(specimen, kind)
    await check_files(world, specimen, name, kind, rule, MALWARE)
    await world.settle()
    await check_documents(world, specimen, name, kind, rule)
    await check_abouts(world, specimen, name, rule)


async def check_cell(world: World, specimen: Specimen, kind: str, rule: RuleKind) -> None:
    """Set a rule for a new repository of a kind, and take every road out of it."""
    name = await world.repository(specimen, kind)
    if kind in (*STORED, "warm"):
        await fetch_all(world, specimen, name, kind)
    await world.set_rules(name, {"name": "no", "reason": REASON, "match": rule.match(specimen, kind)})
    if kind == "listed" or (kind in STORED and rule.name in specimen.read_late):
        for path in documents_of(specimen, kind):
            assert (await read(world, name, path)).status in (200, 403, 404, 451), path
    elif kind in STORED:
        await check_documents(world, specimen, name, kind, rule)
    await check_files(world, specimen, name, kind, rule)
    await world.settle()
    await check_documents(world, specimen, name, kind, rule)
    await check_abouts(world, specimen, name, rule)
