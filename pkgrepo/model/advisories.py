"""Known vulnerabilities of packages."""

from __future__ import annotations

from attrs import frozen


@frozen
class VersionAdvisory:
    """
    A known vulnerability of one version of a package, as its database describes it.

    ``severity`` is info, low, moderate, high or critical. ``affected`` and ``fixed`` are ranges of versions in the
    syntax of the package's own clients; an empty ``fixed`` says that no version is known to be free of it. ``aliases``
    are its ids in other databases.
    """

    id: str
    title: str
    severity: str
    url: str
    aliases: tuple[str, ...]
    affected: str
    fixed: str
