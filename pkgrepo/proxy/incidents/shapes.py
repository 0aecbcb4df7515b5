"""
The table of incidents: what each version was, as far as a registry, its documents and its archives tell it.

==============  ======================================================================================================
value           what it is
==============  ======================================================================================================
``Incident``    one event, with the reports that tell of it
``Affected``    a package in it, with the versions before and those that did harm
``Published``       a version: when it was there, who published it, and what its archive has inside
``Drilled``     how a format makes an archive, and the document of an upstream, of such versions
==============  ======================================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec
from attrs import frozen

from pkgrepo.archives.inside import Word

Proof = Literal["", "provenance", "trusted"]
Precision = Literal["minute", "hour", "day"]

NEVER: Final = sys.maxsize  # a time in ms
UPSTREAM: Final = "https://upstream.invalid"  # the address of the upstream in made documents, which nothing asks


class Published(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """
    A version as it was.

    ``at`` is when it was published, ``removed`` when the registry stopped serving it. ``harmful`` is one that an
    incident is about. ``publisher`` is the account that published it, or the pipeline with a ``proof``: ``provenance``
    was attested, or it was ``trusted`` as well, without a stored token. ``maintainers`` are the accounts that could
    publish, with none the publisher alone. ``inside`` is what its archive has that runs;
    ``script`` is the name of its script of npm. ``needs`` are dependencies, with ranges or addresses. ``kib`` is the
    size of its code, which is ``dense`` if it has few long lines: both are as in the report, or of that order, and at
    most 1 MiB. A Python version with ``sdist`` has no wheel. Of versions before an incident the times are rough.
    """

    version: str
    at: datetime
    removed: datetime | None = None
    harmful: bool = False
    publisher: str = "maintainer"
    maintainers: list[str] = []
    proof: Proof = ""
    inside: list[Word] = []
    script: str = "postinstall"
    needs: dict[str, str] = {}
    repository: str = ""
    kib: int = 8
    dense: bool = False
    sdist: bool = False

    @property
    def at_ms(self) -> int:
        """When it was published, in ms."""
        return round(self.at.timestamp() * 1000)

    @property
    def removed_ms(self) -> int:
        """When it was removed, in ms; ``NEVER`` if it was not."""
        return NEVER if self.removed is None else round(self.removed.timestamp() * 1000)


class Known(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The record by which a database of vulnerabilities told of a package, and when it did first."""

    id: str
    at: datetime

    @property
    def at_ms(self) -> int:
        """When that was, in ms."""
        return round(self.at.timestamp() * 1000)


class Affected(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """
    A package, and its versions in the order of their publication; ``known`` is None where no record tells of it.

    With ``through`` people got it only as a dependency of that package.
    """

    name: str
    versions: list[Published]
    known: Known | None = None
    through: str = ""

    @property
    def harmful(self) -> Sequence[Published]:
        """The versions that did harm."""
        return [each for each in self.versions if each.harmful]


class Incident(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """
    One incident; ``name`` is how people ask for it. ``ids`` are further names, such as CVE-2022-23812.

    ``changed`` says in words what the versions had that those before did not. ``precision`` tells how exactly reports
    give its times. ``names`` are further packages of which the report says that they had the same, and ``count`` how
    many there were in all, if that is more. ``sources`` are titles of reports.
    """

    name: str
    title: str
    format: str
    changed: str
    packages: list[Affected]
    sources: list[str]
    ids: list[str] = []
    precision: Precision = "minute"
    names: list[str] = []
    count: int = 0

    @property
    def package_names(self) -> Sequence[str]:
        """The names of all packages that are known to have been affected."""
        return [*(each.name for each in self.packages if each.harmful), *self.names]

    @property
    def published_at(self) -> datetime:
        """When the first version that did harm was published."""
        return min(version.at for each in self.packages for version in each.harmful)

    @property
    def removed_at(self) -> datetime:
        """When the last of them was removed."""
        return max(version.removed or version.at for each in self.packages for version in each.harmful)


@frozen
class Made:
    """A harmless file of the shape of a version: its public path in a repository, and its bytes."""

    path: str
    content: bytes


@frozen(kw_only=True, eq=False)
class Drilled:
    """
    How a format makes harmless packages for drills.

    ``make`` is the file of a version of a package. ``document`` is that of an upstream about a package with some
    versions, at an address, as the upstream of clients writes it: what the format's normaliser reads. ``age_days`` is
    for how long new versions are better held back: where documents and archives tell less, reports take longer.
    """

    make: Callable[[str, Published], Made]
    document: Callable[[str, Mapping[str, tuple[Published, Made]], str], bytes]
    age_days: int = 3
