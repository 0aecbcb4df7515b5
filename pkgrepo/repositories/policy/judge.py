"""
The decision about one package of one repository, which serving, explanations and rehearsals ask.

It gathers what is known of a file or version, wherever that comes from, and asks the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from attrs import evolve, frozen
from twisted.logger import Logger

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.catalog.rows import to_ms

from .conditions import CACHED, HOSTED, Facts
from .facts import declared, digests_of, facts_of_version, stored_facts, with_advisories
from .rules import PackageRules, Verdict

_failures: Final = FailureLog(Logger(), "what an upstream lists is refused, as its metadata cannot be read")


class ListedFile(Protocol):
    """A file in a document of an upstream."""

    @property
    def path(self) -> str:
        """Its public path in the repository."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Digests (hex) by algorithm."""


class Listed(Protocol):
    """A version, or a file, in a document of an upstream."""

    @property
    def version(self) -> str:
        """The text of the version."""

    @property
    def published_ms(self) -> int | None:
        """When it was published, or first seen."""

    @property
    def files(self) -> Sequence[ListedFile]:
        """Its files."""

    @property
    def fragments(self) -> Mapping[str, bytes]:
        """What is shown of it, by kind."""


@frozen
class Declares:
    """
    The kinds of fragments that have the metadata of a version, and how these are read of those that an entry has.

    ``read`` raises ``Invalid`` if they cannot be read.
    """

    kinds: tuple[str, ...]
    read: Callable[[Mapping[str, bytes]], Mapping[str, Any]]


@frozen(eq=False)
class Judge:
    """
    The rules about a package of one member, ready to be asked.

    ``known`` are the advisories on the package, if the rules ask for them; ``complete``: none is missing.
    ``declares`` is where documents of upstreams have metadata, if the rules ask for these.
    """

    format: StoredFormat
    rules: PackageRules
    member: Repository
    now_ms: int
    known: Any = None
    complete: bool = False
    declares: Declares | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of fragments that entries must have to be judged."""
        return () if self.declares is None else self.declares.kinds

    def of_entry(self, entry: Listed, route: str) -> Verdict:
        """The verdict on what an upstream lists."""
        meta: Mapping[str, Any] = {}
        unreadable = False
        if self.declares is not None:
            try:
                meta = self.declares.read(entry.fragments)
            except Invalid as error:
                unreadable = True
                reason = f"{self.rules.package} {entry.version} of {self.member.path}: {error}"
                _failures.failed(error, reason=reason)
        digests = frozenset[str]().union(*(digests_of(each.digests) for each in entry.files))
        paths = [each.path for each in entry.files if not each.path.endswith((".metadata", ".asc", ".provenance"))]
        facts = Facts(
            package=self.rules.package,
            versions=(entry.version,) if entry.version else (),
            published_ms=entry.published_ms,
            source=CACHED,
            route=route,
            digests=digests,
            unreadable=unreadable,
            **declared(self.format, meta, paths),
        )
        return self._decide(facts)

    def of_kept(self, reader: Reader, file: File) -> Verdict:
        """The verdict on a file that is stored."""
        main = file
        if file.role is not None:  # it is as old as the file that it belongs to, and goes with that
            path = file.path.removesuffix(file.role)
            main = files.find_file(reader, file.repository_id, path) or evolve(file, path=path)
        found = [] if main.version_id is None else versions.versions_by_id(reader, [main.version_id])
        if found:
            facts = facts_of_version(self.format, self.member, self.rules.package, found[0], [main])
        else:
            facts = self._of_no_version(main)
        return self._decide(evolve(facts, digests=facts.digests | digests_of(file.digests, file.sha256)))

    def _of_no_version(self, file: File) -> Facts:
        origin = file.origin
        cached = self.member.type is RepositoryType.PROXY
        return Facts(
            package=self.rules.package,
            published_ms=origin.published_ms if origin is not None else None,
            source=CACHED if cached else HOSTED,
            route="" if origin is None else origin.route,
            digests=digests_of(file.digests, file.sha256),
        )

    def hidden_files(self, reader: Reader, package_id: int) -> tuple[dict[str, Verdict], dict[str, Verdict]]:
        """
        What a stored package has that is not served: versions by text, and files by path.

        A version is not served if it has files and none of them is.
        """
        hidden_versions: dict[str, Verdict] = {}
        hidden_files: dict[str, Verdict] = {}
        rules, hosted, gil = self.rules, self.member.type is RepositoryType.HOSTED, GilReleaser()
        for version, stored, facts in stored_facts(
            reader, self.format, self.member, rules.package, package_id, rules, complete=self.complete
        ):
            gil.release_if_due()
            main = [each for each in stored if each.role is None]
            verdicts = {
                each.path: rules.decide(
                    evolve(
                        facts_of_version(self.format, self.member, rules.package, version, [each]),
                        advisories=facts.advisories,
                        added_ms=to_ms(each.created_at) if hosted else None,
                    ),
                    self.now_ms,
                )
                for each in main
            }
            hidden_files |= {path: each for path, each in verdicts.items() if not each.served}
            if verdicts and not any(each.served for each in verdicts.values()):
                hidden_versions[version.text] = next(iter(verdicts.values()))
            elif not verdicts and not (verdict := rules.decide(facts, self.now_ms)).served:
                hidden_versions[version.text] = verdict
        return hidden_versions, hidden_files

    def _decide(self, facts: Facts) -> Verdict:
        return self.rules.decide(with_advisories(facts, self.format, self.known, complete=self.complete), self.now_ms)
