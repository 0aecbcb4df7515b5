"""
Packages of two repositories over one storage: published, deleted, restored, purged, taken by retention, collected.

What was published and not deleted is readable with its bytes, and nothing else is; what the trash has can be restored
with its bytes, whatever was collected; the counts of use equal the sums; retention takes nothing that its rule keeps.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from attrs import define
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pkgrepo.errors import Conflict, FileBurned, FileExists, QuotaExceeded
from pkgrepo.formats.python.names import file_path
from pkgrepo.model import File, Repository
from pkgrepo.repositories.configuration import Retention, RetentionKeep, RetentionRule
from pkgrepo.repositories.publish.package_changes import remove_files, remove_package
from pkgrepo.repositories.retention.run import RetentionWork
from pkgrepo.repositories.upkeep.gc import GarbageCollector, GcOptions
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.repositories.upkeep.trash import restore_some
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.server import quotas, repositories, settings, trash
from pkgrepo.storage.catalog.server.quotas import QuotaKind
from tests.support.admission import admitted
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.quota_walk import summed
from tests.support.repositories import InlinePools, RepositoryServices, now

NAMES = st.sampled_from(["demo", "other"])
VERSIONS = ("0.9", "1.0", "1.1rc1", "2.0", "2.0.post1")  # in their order
WHERE = st.integers(0, 1)
PLACES = tuple[str, str, str]  # package, version, path


@define(eq=False)
class Bin:
    """An entry of the trash: the repository, and the bytes of its files by (package, version, path)."""

    uid: str
    where: int
    files: dict[PLACES, bytes]


class ContentMachine(RuleBasedStateMachine):
    """See the module."""

    @initialize(quota=st.sampled_from([None, None, 12_000]))
    def begin(self, quota: int | None) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.world = RepositoryServices(Path(self.temporary.name) / "store", InlinePools())
        now(self.world.start())
        now(self.world.add_repository("second"))
        now(self.world.catalog.write(settings.put, trash.TRASH_DAYS, "14"))
        self.quota = quota
        self.files: list[dict[PLACES, bytes]] = [{}, {}]
        self.bins: list[Bin] = []
        self.burned: set[tuple[int, str]] = set()
        if quota is not None:
            limits = {"bytes": quota}
            now(self.world.catalog.write(quotas.change_limits, QuotaKind.REPOSITORY, self.at(0).id, limits))

    def teardown(self) -> None:
        if hasattr(self, "temporary"):
            self.temporary.cleanup()

    def at(self, where: int) -> Repository:
        found = self.world.registry.find("main", ("py", "second")[where])
        assert found is not None
        return found

    @rule(
        where=WHERE, name=NAMES, version=st.sampled_from(VERSIONS), sdist=st.booleans(), pad=st.sampled_from([0, 3000])
    )
    def publish(self, where: int, name: str, version: str, sdist: bool, pad: int) -> None:
        filename, data = (make_sdist if sdist else make_wheel)(name, version, pad=pad)
        path = file_path(name, version, filename)
        try:
            now(self.world.publish(filename, data, where=self.at(where)))
        except (FileExists, Conflict):
            assert self.files[where].get((name, version, path), data) != data, "a free place was refused"
        except FileBurned:
            assert (where, path) in self.burned, "a name was burned that was not deleted for good"
        except QuotaExceeded:
            assert (self.quota is None, where) == (False, 0), "a quota where there is none"
        else:
            before = self.files[where].setdefault((name, version, path), data)
            assert before == data, "other bytes took the place of published ones"

    @precondition(lambda self: any(self.files))
    @rule(pick=st.randoms(use_true_random=False), whole=st.sampled_from(["file", "version", "package"]))
    def delete(self, pick: Any, whole: str) -> None:
        where = pick.choice([each for each in (0, 1) if self.files[each]])
        name, version, path = pick.choice(sorted(self.files[where]))
        repository, actor = self.at(where), admitted(self.at(where))
        if whole == "package":
            now(self.world.content.change(remove_package, repository, name, actor, False))
        else:
            key = self.world.format.version_key(version)
            paths = [path, *self._companions(where, path)] if whole == "file" else None
            given = (name, key, paths, actor, self.world.format.index, False)
            now(self.world.content.change(remove_files, repository, *given))
        gone = {
            place: self.files[where].pop(place)
            for place in sorted(self.files[where])
            if place[: {"package": 1, "version": 2, "file": 3}[whole]]
            == (name, version, path)[: {"package": 1, "version": 2, "file": 3}[whole]]
        }
        self._note_bins(where, gone)

    @precondition(lambda self: self.bins)
    @rule(which=st.integers(0, 99))
    def restore(self, which: int) -> None:
        each = self.bins[which % len(self.bins)]
        repository = self.at(each.where)
        taken = any(place in self.files[each.where] for place in each.files)
        given = (each.uid, self.world.format.index, admitted(repository), True)
        try:
            now(self.world.content.change(restore_some, repository, *given))
        except QuotaExceeded:
            assert (self.quota is None, each.where) == (False, 0), "a quota where there is none"
            return
        except (Conflict, FileExists):
            assert taken or any(place[:2] == other[:2] for place in each.files for other in self.files[each.where]), (
                "a restore was refused whose place is free"
            )
            return
        self.bins.remove(each)
        self.files[each.where] |= each.files

    @precondition(lambda self: self.bins)
    @rule(which=st.integers(0, 99))
    def purge(self, which: int) -> None:
        each = self.bins.pop(which % len(self.bins))
        entry = self.world.catalog.peek(trash.find_entry, each.uid)
        assert entry is not None
        assert now(self.world.catalog.write(trash.purge_entry, entry.id))

    @rule(untagged=st.booleans())
    def collect(self, untagged: bool) -> None:
        collector = GarbageCollector(self.world.context, on_change=self.world.poked.append)
        report = now(
            collector.run(self.world.storage, self.world.registry.all(), GcOptions(grace_s=0, untagged=untagged))
        )
        assert report.errors == []

    @rule()
    def sweep(self) -> None:
        from datetime import UTC, datetime

        swept = now(Sweep(self.world.context).run(self.world.storage, self.world.store, datetime.now(UTC), None))
        assert swept is not None

    @rule(where=WHERE, last=st.integers(0, 3), action=st.sampled_from(["trash", "delete"]), preview=st.booleans())
    def retain(self, where: int, last: int, action: Any, preview: bool) -> None:
        """Of each package so many of the highest versions stay, and only these."""
        keep = RetentionKeep(last=last)
        rules = Retention(max_delete_percent=100, rules=[RetentionRule(name="old", keep=keep, action=action)])
        work, repository = RetentionWork(self.world.context, self.world.content), self.at(where)
        highest = {
            name: sorted({each[1] for each in self.files[where] if each[0] == name}, key=VERSIONS.index)[::-1][:last]
            for name in {each[0] for each in self.files[where]}
        }
        gone = {place for place in self.files[where] if place[1] not in highest[place[0]]}
        if preview:
            report = now(work.preview(repository, rules, NoProgress()))
            assert {(each.package, each.name) for each in report.victims} == {place[:2] for place in gone}
            return
        result = now(work.run(repository, rules, admitted(repository), True, NoProgress()))
        assert result["errors"] == []
        lost = {place: self.files[where].pop(place) for place in sorted(gone)}
        self.burned |= {(where, path) for _, _, path in lost}  # a rule's removal burns the names
        if action == "trash":
            self._note_bins(where, lost)

    @invariant()
    def what_was_published_is_there_and_nothing_else(self) -> None:
        if not hasattr(self, "world"):
            return
        for where in (0, 1):
            found = {each.path: each for each in self._stored(where) if each.role is None}
            wanted = {path: body for (_, _, path), body in self.files[where].items()}
            assert found.keys() == wanted.keys()
            for path, file in found.items():
                body = now(self.world.store.open(file.locator).read(0, 1 << 30))
                assert (body, file.size) == (wanted[path], len(body)), f"{path} has other bytes"
                assert file.sha256 == hashlib.sha256(body).hexdigest()

    @invariant()
    def the_counts_equal_the_sums(self) -> None:
        if not hasattr(self, "world"):
            return
        for where in (0, 1):
            repository = self.world.catalog.peek(repositories.get_repository, self.at(where).id)
            used = self.world.catalog.peek(summed, repository.id)
            assert (repository.bytes_used, repository.package_count) == (used.bytes, used.packages)
            if self.quota is not None and where == 0:
                assert used.bytes <= self.quota, "more than the quota"
            named = {name for name, _, _ in self.files[where]}
            assert {each.key for each in self.world.catalog.peek(packages.list_packages, repository.id)} == named

    def _companions(self, where: int, path: str) -> list[str]:
        """The paths of files that go with a file."""
        return [each.path for each in self._stored(where) if each.role is not None and each.path.startswith(path)]

    def _stored(self, where: int) -> list[File]:
        """The rows of all files of a repository."""
        peek = self.world.catalog.peek
        every = [
            version
            for package in peek(packages.list_packages, self.at(where).id)
            for version in peek(versions.list_versions, package.id)
        ]
        return [file for version in every for file in peek(files.files_of_version, version.id)]

    def _note_bins(self, where: int, gone: dict[PLACES, bytes]) -> None:
        """Note the entries of the trash that are new, which have all that is gone."""
        known = {each.uid for each in self.bins}
        entries = self.world.catalog.peek(
            lambda r: trash.list_entries(r, repository_id=self.at(where).id, after=None, limit=1000)
        )
        new = [each for each in entries if each.uid not in known]
        for entry in new:
            mine = {place: body for place, body in gone.items() if place[0] == entry.package_key}
            self.bins.append(Bin(entry.uid, where, mine))
            gone = {place: body for place, body in gone.items() if place not in mine}
        assert not gone, "what was deleted is in no entry of the trash"
