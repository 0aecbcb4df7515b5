"""The members of a repository that serve a package, and whether they still do."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.documents.held import DocumentRequest, Held
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.packages import RETIRED, ownership
from pkgrepo.storage.catalog.server import repositories

from .release_age import AgeRule


@frozen(eq=False)
class HostedMember:
    """A package of a hosted repository at one serial."""

    repository: Repository
    serial: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Differs whenever the package has changed."""
        return self.repository.id, self.serial


@frozen(eq=False)
class UpstreamMember:
    """
    A package of a proxy as its upstream last described it.

    At ``opens_ms`` (None: never) a version that is too young now will be shown. ``age`` is the rule that hides it.
    ``request`` is how the upstream was asked.
    """

    repository: Repository
    request: DocumentRequest
    held: Held
    age: AgeRule | None = None
    opens_ms: int | None = None

    @property
    def serial(self) -> int:
        """A number that grows with the content."""
        return self.held.document.fetched_ms

    @property
    def stamp(self) -> tuple[int, int, int, int | None]:
        """Differs whenever what is shown has changed."""
        return self.repository.id, self.serial, 0 if self.age is None else self.age.age_ms, self.opens_ms

    @property
    def expires_ms(self) -> int:
        """When it must be asked for again."""
        fresh_until_ms = self.held.document.fresh_until_ms
        return fresh_until_ms if self.opens_ms is None else min(fresh_until_ms, self.opens_ms)


Member = HostedMember | UpstreamMember


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

    @property
    def expires_s(self) -> int:
        """When upstreams must be asked again, in Unix seconds; 0 for never."""
        expiries = [each.expires_ms for each in self.serving if isinstance(each, UpstreamMember)]
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
    fetched = upstream_documents.fetched_at(reader, member.repository.id, member.held.document.key)
    return fetched == member.held.document.fetched_ms
