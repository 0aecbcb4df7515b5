"""The rule that a release is served only some time after its publication, when others have had time to look at it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import define, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.model import Repository

from .leaves import Leaf


@define
class TooYoung(PkgrepoError):  # noqa: N818 - named for what happened
    """A release is younger than the repository serves it; ``opens_ms`` is None if its date is not known."""

    name: str
    repository: str
    days: float
    opens_ms: int | None

    @property
    def header_reason(self) -> str:
        """The reason for the header of an answer."""
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


def find_age_rule(leaf: Leaf, key: str) -> AgeRule | None:
    """The strictest rule for a package (a key) of a repository and those around it, or None."""
    found = [
        AgeRule(age.ms, age.days, owner.path) for owner, rules in leaf.rules if (age := rules.age_for(key)) is not None
    ]
    return max(found, key=lambda rule: rule.age_ms, default=None)
