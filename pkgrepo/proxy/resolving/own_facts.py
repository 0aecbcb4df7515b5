"""
What rules ask of files, read before the first byte of such a file is sent.

==============================  ====================================================================================
a rule asks for                 it is read of
==============================  ====================================================================================
digests that are not announced  the whole file of an upstream, which is kept when it is verified, or of one that is kept
or stored with a file           or was published here
what a file has inside          the whole file, also one that was published here
who published it                its attestation, unless what documents claim decides alone; it is verified
how it differs from the one     the whole file, and those before it with which it is compared; when packages that it
before                          newly needs were first published
what documents do not tell      the files that describe it (``OwnFacts``): the metadata beside it, those of its
                                version, or the file itself
==============================  ====================================================================================

It is read once for all who wait, and noted in the catalog for all repositories. Documents show a file until something
is noted of it that a rule is about. If an upstream fails meanwhile, the request fails with it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from attrs import define, evolve, field

from pkgrepo.concurrency.pools import Pool
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File, RepositoryType
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.conditions import INSIDE, Facts
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.storage.catalog.file_facts import (
    FileFacts,
    names_of,
    place_of,
    strong_names,
)
from pkgrepo.storage.catalog.packages import files

from .attested_files import AttestedFiles, beside
from .dependency_ages import DependencyAges
from .fact_reading import FactReading
from .source_archives import SourceArchives
from .told import Wanted, asked_of_files, by_algorithm

MOST: Final = sys.maxsize
MOST_BEFORE: Final = 4  # files that are read for one that is asked for, beside itself: two are enough, as a rule

About = Callable[[Judge], Awaitable[Facts]]  # what is known of a file, as a judge knows it


_Place = tuple[int, str, str, Wanted]  # repository, package, name: versions of two packages may have one text


@define(eq=False, kw_only=True)
class OwnFactsOfFiles:
    """
    Finds out which files have to be read for the rules of a judge, and has them read by ``reading``.

    ``proxied`` are formats by name. Attestations are read by ``attested``, ``ages`` are those of packages that versions
    need, and ``sources`` the archives with which files are compared.
    """

    _catalog: ICatalog
    _pool: Pool
    _proxied: Mapping[str, Proxied]
    _fetching: Fetching
    _attested: AttestedFiles
    _ages: DependencyAges
    _sources: SourceArchives
    reading: FactReading
    _in_flight: SingleFlight[_Place, FileFacts] = field(factory=SingleFlight)
    _listed_in_flight: SingleFlight[_Place, tuple[str, FileFacts]] = field(factory=SingleFlight)

    def reads(self, judge: Judge) -> bool:
        """Whether the rules of a judge ask for anything that is read here, beside digests of files of upstreams."""
        digests = judge.rules.reads_digests and judge.member.type is RepositoryType.HOSTED
        return digests or bool(asked_of_files(judge.rules, judge.own))

    async def of_listed(self, judge: Judge, remote: RemoteFile, *, digests: bool = True, largest: int = MOST) -> Judge:
        """
        The judge, with what its rules ask of a file that a document of an upstream lists.

        Without ``digests`` the whole file is not read for these alone, nor for what one of more than ``largest`` bytes,
        packed or unpacked, has inside.

        :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        about = partial(_of_entry, remote)
        left = _is_left(judge, remote, largest)
        inside = frozenset[Datum]() if left else await self._inside_wanted(_without_place(judge, remote), about)
        read = partial(self._of_listed, judge, remote, inside, digests=digests, largest=largest)
        if "differs" not in inside:
            return await read()
        return await self._with_before(judge, about, self._main_of(remote).source.path, read, largest)

    async def _inside_wanted(self, judge: Judge, about: About) -> frozenset[Datum]:
        """What rules ask of the inside of a file, unless they are ruled out by what else is known of it."""
        asked = self.reading.asked(judge) & INSIDE
        if not asked:
            return asked
        facts = await about(judge)
        return (
            asked if facts.decision is not None else asked & await self._pool(judge.rules.may_ask, facts, judge.now_ms)
        )

    async def _with_before(
        self, judge: Judge, about: About, path: str, read: Callable[[], Coroutine[Any, Any, Judge]], largest: int = MOST
    ) -> Judge:
        """
        The judge, with what its rules ask of the file at a path, which ``read`` reads, and of those before it.

        They are read together. What is left after ``MOST_BEFORE`` of them, or cannot be had, is not known.
        """
        asked = {path}
        lacking = await self._before(judge, about, asked)
        found = await together([read(), *(self._with_file(judge, each, largest) for each in lacking)])
        while True:
            judge = _with_read(judge, found)
            lacking = await self._before(judge, about, asked)
            if not lacking:
                return await self._with_sources(await self._with_ages(judge, about), about)
            found = await together(self._with_file(judge, each, largest) for each in lacking)

    async def _with_ages(self, judge: Judge, about: About) -> Judge:
        """The judge, with what its rules ask of the packages that a file newly needs."""
        if not judge.asks_ages:
            return judge
        facts = await about(judge)
        names = await self._pool(judge.asking, facts)
        return await self._ages.of(judge, names, facts.published_ms) if names else judge

    async def _with_sources(self, judge: Judge, about: About) -> Judge:
        """The judge, with what archives of their sources do not explain of a file and of those before it."""
        if not judge.asks_sources:
            return judge
        paths = await self._pool(judge.unexplained, await about(judge))
        return _with_read(judge, await together(self._with_source(judge, each) for each in paths))

    async def _with_source(self, judge: Judge, path: str) -> Judge:
        try:
            found = await self._find(judge, path)
            if isinstance(found, RemoteFile):
                file = await self._fetching.finish(found)
                facts, names = await _of_entry(found, judge), strong_names(found.source.digests)
                names += [f"sha256:{file.sha256}"]  # a place may have another file by now
            elif found is not None:
                file, facts = found, await self._of_stored(found, judge)
                names = strong_names({**file.digests, "sha256": file.sha256})
            else:
                return judge
        except NotFound:
            return judge
        return await self._sources.of(judge, file, facts, names)

    async def _find(self, judge: Judge, path: str) -> RemoteFile | File | None:
        """A file of the package by its path, as it can be read."""
        find = None if judge.line is None else judge.line.find
        found: RemoteFile | File | None
        if find is None:
            found = await self._catalog.look(files.find_file, judge.member.id, path)
        else:
            found = await find(path)
        return found

    async def _before(self, judge: Judge, about: About, asked: set[str]) -> Sequence[str]:
        """The paths of files that are to be read next, which are ``asked`` for from now on."""
        lacking = await self._pool(judge.lacking, await about(judge))
        found = [each for each in lacking if each not in asked][: MOST_BEFORE + 1 - len(asked)]
        asked.update(found)
        return found

    async def _with_file(self, judge: Judge, path: str, largest: int) -> Judge:
        """The judge, with what its rules ask of another file of the package, if that can be had."""
        inside = self.reading.asked(judge) & INSIDE
        try:
            found = await self._find(judge, path)
            if isinstance(found, RemoteFile):
                return await self._of_listed(judge, found, inside, digests=False, largest=largest)
            if found is None:
                return judge
            return await self._of_kept(
                await self._attested.of_kept(judge, found), found, Wanted(self.reading.asked(judge))
            )
        except NotFound:
            return judge

    async def _of_listed(
        self, judge: Judge, remote: RemoteFile, inside: frozenset[Datum], *, digests: bool, largest: int
    ) -> Judge:
        main = self._main_of(remote)
        judge = await self._attested.of_listed(judge, main)
        both = [main, remote] if remote.source.path != main.source.path else [main]
        for each in both:
            missing = judge.rules.algorithms - each.source.digests.keys() if digests else ()
            data = self.reading.asked(judge) - INSIDE | inside if each is main else frozenset[Datum]()
            if _is_left(judge, each, largest):
                data -= INSIDE
            wanted = Wanted(data, frozenset(missing))
            if not wanted:
                continue
            proxy, names = each.repository, names_of(each.source.digests, each.repository.id, each.source.path)
            known = any(wanted.is_in(judge.facts.get(name)) for name in names)
            # What has no digest may be another file by now: that is found out where it is kept.
            if not known or not strong_names(each.source.digests):
                read = partial(self.reading.read_listed, judge, each, wanted)
                name, facts = await self._listed_in_flight.run((proxy.id, judge.rules.package, names[1], wanted), read)
                judge = evolve(judge, facts={**judge.facts, name: facts})
        return judge

    async def of_kept(self, judge: Judge, file: File) -> Judge:
        """The judge, with what its rules ask of a file that is kept. It raises what ``of_listed`` raises."""
        judge = await self._with_digests(await self._attested.of_kept(judge, file), file)
        own, data, unread = self._proxied[judge.member.format].own_facts, self.reading.asked(judge), frozenset[Datum]()
        if not data or own.of_versions:
            return evolve(judge, own=unread)
        main: File | None = file
        if (path := own.main_of(file.path)) != file.path:
            main = await self._catalog.look(files.find_file, file.repository_id, path)
        if main is None:  # what that has inside is read when it is asked for
            data, unread = data - INSIDE, judge.own & INSIDE
            if not data or file.path not in own.described_by(path):
                return evolve(judge, own=unread)
        main = main or file
        about = partial(self._of_stored, main)
        inside = await self._inside_wanted(judge, about) if data & INSIDE else frozenset[Datum]()
        kept = partial(self._of_kept, judge, main, Wanted(data - INSIDE | inside))
        judge = await (self._with_before(judge, about, main.path, kept) if "differs" in inside else kept())
        facts, known = judge.facts, judge.facts.get(f"sha256:{main.sha256}")
        if known is not None and main.sha256 != file.sha256:  # it is judged as that, and has digests of its own
            own_digests = tuple(sorted(judge.digests_of_kept(file)))
            facts = {**facts, f"sha256:{file.sha256}": msgspec.structs.replace(known, digests=own_digests)}
        return evolve(judge, own=unread, facts=facts)

    async def _of_stored(self, file: File, judge: Judge) -> Facts:
        facts: Facts = await self._catalog.scan(judge.facts_of_kept, file)
        return facts

    async def _with_digests(self, judge: Judge, file: File) -> Judge:
        """The judge, with the digests that its rules name of a kept file, and of the one that it belongs to."""
        if not judge.rules.reads_digests:
            return judge
        main: File = file if file.role is None else await self._catalog.look(judge.main_of, file)
        for each in [file] if main.sha256 == file.sha256 else [main, file]:
            missing = judge.rules.algorithms.difference(by_algorithm(judge.digests_of_kept(each)))
            judge = await self._of_kept(judge, each, Wanted(algorithms=missing))
        return judge

    async def _of_kept(self, judge: Judge, main: File, wanted: Wanted) -> Judge:
        name = f"sha256:{main.sha256}"
        known = judge.facts.get(name)
        if wanted and (known is None or not wanted.is_in(known)):
            read = partial(self.reading.read_kept, judge, main, known, wanted)
            known = await self._in_flight.run((main.repository_id, judge.rules.package, name, wanted), read)
        return judge if known is None else evolve(judge, facts={**judge.facts, name: known})

    async def of_version(self, judge: Judge, request: FileRequest) -> Judge:
        """
        The judge, with what its rules ask of the version that a file belongs to, if one file describes all of these.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``of_listed``
        """
        ask = self._proxied[judge.member.format].file_request
        name, wanted = place_of(judge.member.id, request.version_text), Wanted(frozenset(self.reading.asked(judge)))
        for number, path in enumerate(self._describing(judge, request)):
            if ask is None or (number and wanted.is_in(judge.facts.get(name))):
                break
            read = partial(self.reading.read_described, judge, ask(request.package_key, path), name)
            known = await self._in_flight.run((judge.member.id, judge.rules.package, f"{name} {path}", wanted), read)
            judge = evolve(judge, facts={**judge.facts, name: known})
        return judge

    async def note_undescribed(self, judge: Judge, request: FileRequest) -> None:
        """
        Note that no file describes the version that a refused file belongs to, so that documents do not show it.

        It was looked for before. It is noted of files that there are alone: clients can make up any number of versions.
        """
        name = place_of(judge.member.id, request.version_text)
        known = judge.facts.get(name, FileFacts())
        declared = frozenset(self.reading.asked(judge)) - {"age"}
        if declared and self._describing(judge, request) and known.licences is None and not known.unreadable:
            await self.reading.note(judge, name, msgspec.structs.replace(known, licences=()))

    def _describing(self, judge: Judge, request: FileRequest) -> Sequence[str]:
        """The paths of the files that describe the version of another one; none if the rules do not ask for them."""
        own = self._proxied[judge.member.format].own_facts
        asks = self.reading.asked(judge) and own.of_versions and request.lasting
        return [path for path in own.described_by(request.path) if path] if asks else ()

    def _main_of(self, remote: RemoteFile) -> RemoteFile:
        """The file that a file is beside, which is judged in its place."""
        path = self._proxied[remote.repository.format].own_facts.main_of(remote.source.path)
        return beside(remote, path) or remote


def _is_left(judge: Judge, remote: RemoteFile, largest: int) -> bool:
    """Whether what a file has inside is left for those who ask for it: it is large, or clients have no choice of it."""
    told = judge.facts_of_entry(remote.entry, remote.route).told
    large = max(remote.source.size or 0, 0 if told is None else told.unpacked or 0) > largest
    return large or (largest < MOST and told is not None and told.platform)


def _with_read(judge: Judge, found: Iterable[Judge]) -> Judge:
    """The judge, with what others that began with the same facts have read; each still has the old ones of the rest."""
    old = judge.facts
    read = {name: each for one in found for name, each in one.facts.items() if each != old.get(name)}
    return evolve(judge, facts={**old, **read})


async def _of_entry(remote: RemoteFile, judge: Judge) -> Facts:
    return judge.facts_of_entry(remote.entry, remote.route)


def _without_place(judge: Judge, remote: RemoteFile) -> Judge:
    """The judge without what is known of a file by its place alone, in which another one may be by now."""
    if strong_names(remote.source.digests):
        return judge
    place = place_of(remote.repository.id, remote.source.path)
    return evolve(judge, facts={name: facts for name, facts in judge.facts.items() if name != place})
