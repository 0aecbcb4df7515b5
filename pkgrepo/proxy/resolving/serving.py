"""What a repository serves of a package: its members, the parts of their documents, and its files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from enum import Enum

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.caching.states import fresh_until_ms
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.file_facts import serial_of_package
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.packages.packages import RETIRED, ownership
from pkgrepo.storage.catalog.server import repositories


@frozen(eq=False)
class HostedMember:
    """
    A package of a hosted repository at one serial.

    At ``opens_ms`` (None: never) its ``judge``, which are the rules about it if there are any, decides otherwise.
    """

    repository: Repository
    serial: int
    judge: Judge | None = None
    opens_ms: int | None = None

    @property
    def stamp(self) -> tuple[Hashable, ...]:
        """Differs whenever what is shown has changed, also by the configuration."""
        return self.repository.id, self.serial, self.repository.updated_at, *_stamp(self.judge, self.opens_ms)

    @property
    def expires_ms(self) -> int | None:
        """When it must be decided again; None for never."""
        return self.opens_ms


@frozen(eq=False)
class UpstreamMember:
    """
    A package of a proxy as its upstream last described it.

    At ``opens_ms`` (None: never) a version that a rule hides now will be shown. ``judge`` are the rules, if any are
    about the package.
    ``request`` is how the upstream was asked.
    """

    repository: Repository
    request: DocumentRequest
    held: Held
    judge: Judge | None = None
    opens_ms: int | None = None

    @property
    def serial(self) -> int:
        """A number that grows with the content."""
        return self.held.document.fetched_ms

    @property
    def stamp(self) -> tuple[Hashable, ...]:
        """Differs whenever what is shown has changed."""
        return self.repository.id, self.serial, *_stamp(self.judge, self.opens_ms)

    @property
    def expires_ms(self) -> int:
        """When it must be asked for again."""
        document = self.held.document
        until_ms = document.fresh_until_ms  # of a stale one: when its routes are asked again
        if not self.held.stale:
            until_ms = fresh_until_ms(self.repository, document, self.request.most_ttl_s)
        return until_ms if self.opens_ms is None else min(until_ms, self.opens_ms)


Member = HostedMember | UpstreamMember


def _stamp(judge: Judge | None, opens_ms: int | None) -> tuple[Hashable, ...]:
    return () if judge is None else (judge.rules.stamp, opens_ms, judge.facts_serial)


@frozen(eq=False)
class Members:
    """
    The members that serve a package, in order.

    ``without`` are the hosted repositories that were asked first and do not have it. At ``recheck_ms`` (None: never)
    others may have it, too, which do not have it now, or failed. ``config_serial`` is that of the server's
    configuration. They are ``partial`` if a route failed whose content should be among theirs.
    """

    serving: Sequence[Member]
    without: Sequence[Repository]
    config_serial: int
    recheck_ms: int | None = None
    partial: bool = False

    @property
    def stale(self) -> bool:
        """Whether something newer may be missing, since an upstream failed."""
        return self.partial or any(isinstance(each, UpstreamMember) and each.held.stale for each in self.serving)

    def settled(self, at_ms: int) -> bool:
        """Whether what came until then is known: every upstream was asked later, and none is missing."""
        asked = [each for each in self.serving if isinstance(each, UpstreamMember)]
        return not self.stale and all(each.held.document.checked_ms > at_ms for each in asked)

    @property
    def expires_s(self) -> int:
        """When upstreams must be asked again, in Unix seconds; 0 for never."""
        expiries = [at_ms for each in self.serving if (at_ms := each.expires_ms) is not None]
        if self.recheck_ms is not None:
            expiries.append(self.recheck_ms)
        return min(expiries) // 1000 if expiries else 0

    def fresh(self, reader: Reader, key: str) -> bool:
        """Whether the same members serve the package with this key, with the same content."""
        if repositories.config_serial(reader) != self.config_serial:
            return False
        retired_before = all(isinstance(each, HostedMember) for each in self.serving)
        for each in self.without:
            owned = ownership(reader, each.id, key)
            if owned is not None and not (retired_before and owned == RETIRED):
                return False
        return all(_is_current(reader, member, key) for member in self.serving)


def _is_current(reader: Reader, member: Member, key: str) -> bool:
    if isinstance(member, HostedMember):
        return packages.package_serial(reader, member.repository.id, key) == member.serial
    listing = member.request.listing
    if listing is not None:
        keys = (listing.request.key, listing.request.tail_key)
        if upstream_documents.latest_fetched_at(reader, member.repository.id, keys) != member.held.listed_ms:
            return False
    judge = member.judge
    if judge is not None and judge.facts_serial not in (None, _facts_serial(reader, judge)):
        return False
    fetched = upstream_documents.fetched_at(reader, member.repository.id, member.held.document.key)
    return fetched == member.held.document.fetched_ms


def _facts_serial(reader: Reader, judge: Judge) -> int:
    return serial_of_package(reader, judge.format.name, judge.rules.package)


@frozen(eq=False)
class PackageState:
    """
    A package as a repository shows it now.

    ``key`` is that of the document, ``package`` that of the package; they differ where a package has several documents.

    ``stamp`` differs whenever the documents would. ``serial`` is a number that grows with them, for documents that name
    one; ``modified_s`` is the time of the last change (Unix seconds) if it is known. At ``expires_s`` (Unix seconds; 0
    for never) the resolver is asked again. ``fresh`` is a query that tells whether the state is still the present one.
    What is not ``cacheable`` is not in the catalog yet, or not complete. With ``stale`` an upstream failed when it was
    asked again, so that something newer may be missing. ``load`` gives the parts of a document in one form, with the
    state that they are of, which may be newer. It is ``settled`` if it is that of a view of the past whose documents
    clients may keep for ever. ``refused`` says why the newest version is not shown, if it is known by then that rules
    hide all of them, and ``refusal_of`` why the first version is not whose text it is told to look for; it knows that
    where the parts are read.
    """

    repository: Repository
    key: str
    package: str
    stamp: Hashable
    serial: int
    modified_s: int | None
    expires_s: int
    fresh: Callable[[Reader], bool]
    load: Callable[[str], Awaitable[tuple[Spliced, PackageState]]]
    cacheable: bool = True
    stale: bool = False
    settled: bool = False
    refused: RuleRefused | None = None
    refusal_of: Callable[[Callable[[str], bool]], RuleRefused | None] = lambda _wanted: None

    def expired(self, now_ms: int) -> bool:
        """Whether the resolver must be asked again."""
        return bool(self.expires_s) and now_ms >= self.expires_s * 1000


class Want(Enum):
    """What a caller does with a file."""

    HEAD = 1  # reads what is known about it
    BYTES = 2  # sends it, or a part of it
    DIGESTS = 3  # sends its digests, which are known when it is verified


@frozen(eq=False)
class FoundFile:
    """
    A file, kept or still to be fetched.

    ``fresh`` is a query that tells whether this is still the file at its path; None if that is not to be cached. The
    answer is also to be asked for again at ``ends_s`` (Unix seconds; 0 for never). A ``mutable`` file may be another
    one later. It is ``stale`` if an upstream failed when it was asked again, and ``removed`` if the upstream does not
    list it any more.

    ``content`` is what arrives of a file that is asked for by its path, and must be closed; None if the file is to be
    fetched by ``Fetching``.
    """

    file: File | RemoteFile
    fresh: Callable[[Reader], bool] | None = None
    ends_s: int = 0
    mutable: bool = False
    stale: bool = False
    removed: bool = False
    content: ArrivingBody | bytes | None = None


def same_file(file: File, condition: Callable[[Reader], bool] | None = None) -> Callable[[Reader], bool]:
    """A query that tells whether a file is still the one at its path, and a condition is met."""

    def same(reader: Reader) -> bool:
        now = files.find_file(reader, file.repository_id, file.path)
        if now is None or (now.sha256, now.locator) != (file.sha256, file.locator):
            return False
        return condition is None or condition(reader)

    return same
