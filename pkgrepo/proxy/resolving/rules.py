"""
The rules that decide whether a file or a release of an upstream is served: reserved names, and a minimum age.

A release is served only some time after its publication, when others have had time to look at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import define, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.trace import NameReserved, StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages import files


@define
class TooYoung(PkgrepoError):  # noqa: N818 - named for what happened
    """A release is younger than the repository serves it; ``opens_ms`` is None if its date is not known."""

    name: str
    repository: str
    days: float
    opens_ms: int | None

    @property
    def header_reason(self) -> str:
        """The reason for the header of a response."""
        return str(self)

    def __str__(self) -> str:
        rule = f"the {self.days:g} days that policy.minimum_release_age of {self.repository} asks for"
        if self.opens_ms is None:
            return f"{self.name} has no publication date, so it may be younger than {rule}"
        try:
            opens = datetime.fromtimestamp(self.opens_ms / 1000, UTC)
        except (ValueError, OverflowError):  # after the year 9999: upstreams choose the dates
            return f"{self.name} has a publication date in the future, so it is younger than {rule}"
        return f"{self.name} is younger than {rule}: it will be served from {opens:%Y-%m-%d %H:%M:%S} UTC"


@frozen
class AgeRule:
    """The minimum age of the releases of one package, as ``repository`` (a path) asks for it."""

    age_ms: int
    days: float
    repository: str

    def hides(self, published_ms: int | None, now_ms: int) -> bool:
        """Whether a release of this time is too young; one of an unknown time is."""
        return published_ms is None or published_ms + self.age_ms > now_ms

    def opening_ms(self, published_ms: int | None) -> int | None:
        """When a release is old enough; None, which is never, if its time is not known."""
        return None if published_ms is None else published_ms + self.age_ms

    def next_opening_ms(self, times: Iterable[int | None], now_ms: int) -> int | None:
        """When the next of the releases of these times is old enough; None if none is too young."""
        openings = (opening for time in times if (opening := self.opening_ms(time)) is not None)
        return min((opening for opening in openings if opening > now_ms), default=None)

    def check(self, name: str, published_ms: int | None, now_ms: int, asked: Repository) -> None:
        """
        Check the age of a release that the repository ``asked`` is to serve.

        :raises TooYoung: it is refused; the error names no other repository, which the client may not know
        """
        if self.hides(published_ms, now_ms):
            raise self.refusal(name, published_ms, asked)

    def refusal(self, name: str, published_ms: int | None, asked: Repository) -> TooYoung:
        """The error for a release of this time, see ``check``."""
        where = asked.path if asked.path == self.repository else f"a member of {asked.path}"
        return TooYoung(name, where, self.days, self.opening_ms(published_ms))


def find_age_rule(flat: FlatMember, key: str) -> AgeRule | None:
    """The strictest rule for a package (a key) of a repository and those around it, or None."""
    found = [
        AgeRule(age.ms, age.days, owner.path) for owner, rules in flat.rules if (age := rules.age_for(key)) is not None
    ]
    return max(found, key=lambda rule: rule.age_ms, default=None)


class FileRules:
    """Checks files of proxies on behalf of the repositories that they are asked of."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

    async def check_kept(
        self, repository: Repository, flat: FlatMember, key: str, path: str, file: File, trace: Trace
    ) -> None:
        """
        Check that a kept file may be served, whose name may have been reserved later.

        :raises NameReserved: it is reserved; :raises TooYoung: a rule refuses it until later
        """
        self.check_reserved(flat, key, trace)
        published_ms = await self._catalog.look(_find_published, file)
        self.check_age(repository, flat, key, path, published_ms, trace)

    def check_reserved(self, flat: FlatMember, key: str, trace: Trace) -> None:
        """Check the name of a package. :raises NameReserved: no upstream is asked for it"""
        for owner, rules in flat.rules:
            pattern = rules.reserved_by(key)
            if pattern is not None:
                trace.add(StepKind.RESERVED, repository=flat.repository.path, pattern=pattern, rule=owner.path)
                raise NameReserved("package", key, pattern)

    def check_age(
        self, repository: Repository, flat: FlatMember, key: str, path: str, published_ms: int | None, trace: Trace
    ) -> None:
        """Check the age of a file of a package. :raises TooYoung: a rule refuses it until later"""
        rule = find_age_rule(flat, key) if key else None
        if rule is None:
            return
        try:
            rule.check(path.rsplit("/", 1)[-1], published_ms, self._clock.now_ms(), repository)
        except TooYoung as error:
            proxy = flat.repository.path
            trace.add(StepKind.FILE_REFUSED, repository=proxy, rule=rule.repository, path=path, why=str(error))
            raise


def _find_published(reader: Reader, file: File) -> int | None:
    """When the upstream published a kept file; of a companion that was found in another file, when that was."""
    found: File | None = file
    if file.origin is None and file.role is not None:
        found = files.find_file(reader, file.repository_id, file.path.removesuffix(file.role))
    return None if found is None or found.origin is None else found.origin.published_ms
