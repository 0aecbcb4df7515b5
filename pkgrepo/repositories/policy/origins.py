"""The decision about files of a companion, which are made of files of its parent: they are judged as these."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository
from pkgrepo.repositories.format import Companion, DerivedFrom, StoredFormat
from pkgrepo.storage.catalog.packages import files

from .archive_addresses import ArchiveAddresses
from .conditions import INSIDE, TRUST, Facts
from .effective import CompanionRules
from .facts import NOTHING_TOLD, advisories_on, digests_of, known_contents
from .histories import wanted_history
from .judge import Judge, with_stored
from .rules import SERVED, Verdict


@frozen(eq=False)
class Origins:
    """
    Decides about what files of a companion are made of, in its parent: a repository of another format.

    ``policy`` are the rules of both. ``loaded`` and ``complete`` tell of the advisories on packages of the parent's
    format; ``root`` is the id of the trusted root. ``read`` is the judge of a package of the parent in which one file
    was read for this decision, if one was: what is not known then is missing. ``archives`` are as those of a L{Judge}.
    """

    companion: Companion
    policy: CompanionRules
    parent: Repository
    format: StoredFormat
    now_ms: int
    loaded: bool = False
    complete: bool = False
    root: str = ""
    read: Judge | None = None
    archives: ArchiveAddresses | None = None

    def with_read(self, read: Judge) -> Origins:
        """The same with the judge of a package of the parent in which one file was read."""
        return evolve(self, read=read)

    def decision(self, reader: Reader, copy: File) -> Callable[[Facts, int], Verdict] | None:
        """
        The decision about a file of the companion, by what is known of it; None for one that was published there.

        It is that on its origin, which an admin decides on, and that of rules about the name of the copy alone. What
        is not in the parent any more is as old as nobody knows.
        """
        of = self.companion.origin(copy.attrs)
        if of is None:
            return None
        judge = self._judge(reader, of.package)
        facts = None if judge is None else self._facts_of_origin(reader, of, judge)

        def decide(of_copy: Facts, at_ms: int) -> Verdict:
            verdict = SERVED
            if judge is not None and facts is not None:
                verdict = judge.decide(evolve(facts, digests=facts.digests | of_copy.digests), at_ms)
                verdict = evolve(verdict, of=(self.parent, of.package))
            beside = self.policy.about_copy(of_copy.package, of.package) if verdict.served else None
            by_name = SERVED if beside is None else beside.decide(of_copy, at_ms)
            return verdict if by_name.served else by_name

        return decide

    def _facts_of_origin(self, reader: Reader, of: DerivedFrom, judge: Judge) -> Facts:
        file = files.find_file(reader, self.parent.id, of.path)
        if file is not None and file.sha256 == of.sha256:
            return judge.facts_of_kept(reader, file)
        known = judge.facts.get(f"sha256:{of.sha256}", NOTHING_TOLD)
        return Facts(package=of.package, versions=(of.version,), digests=digests_of({}, of.sha256).union(known.digests))

    def unread(self, reader: Reader, copy: File) -> tuple[Judge, File] | None:
        """The judge of what a file of the companion is made of, and that; None if rules ask for nothing in it."""
        of = self.companion.origin(copy.attrs)
        judge = None if of is None else self._judge(reader, of.package)
        if of is None or judge is None or not (judge.own or judge.rules.reads_digests):
            return None
        file = files.find_file(reader, self.parent.id, of.path)
        return None if file is None or file.sha256 != of.sha256 else (judge, file)

    def _judge(self, reader: Reader, package: str) -> Judge | None:
        if self.read is not None and self.read.rules.package == package:
            return self.read
        rules = self.policy.origin.of(package)
        if rules is None:
            return None
        known = advisories_on(reader, self.format, package) if self.loaded and "advisories" in rules.needs else None
        facts = known_contents(reader, self.format, package, rules.needs)
        own = rules.needs & (INSIDE | TRUST)
        history = wanted_history(reader, self.format, self.parent, package, rules.needs)
        judge = Judge(self.format, rules, self.parent, self.now_ms, known, self.complete, own=own, facts=facts)
        return with_stored(evolve(judge, history=history, root=self.root, archives=self.archives), reader)
