"""
All settings: name, type, default, unit and meaning.

A class is a section, a field is a key. The output of ``pkgrepo init`` and ``pkgrepo check-config --explain`` is
generated from these. A key has the name of its field without the suffix ``_s`` (seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import field

from pkgrepo.model.structs import meaning

from .keys import Section
from .kinds import ALIASES, HOSTS
from .sections.bootstrap import Bootstrap
from .sections.data import Backup, Data, Database, Gc, Retention, Twin
from .sections.people import Auth
from .sections.repositories import Advisories, Container, Imports, Proxy, Webhooks
from .sections.server import Audit, Compat, Downloads, Limits, Log, Metrics, Server, Tls, Traces
from .sections.texts import SQLITE


class Config(Section, frozen=True):
    """
    The whole validated configuration.

    ``origins`` maps the dotted name of each key that was set to its origin; all other keys have their defaults.
    """

    server: Server = field(default_factory=Server)
    tls: Tls = field(default_factory=Tls)
    data: Data = field(default_factory=Data)
    database: Database = field(default_factory=Database)
    auth: Auth = field(default_factory=Auth)
    limits: Limits = field(default_factory=Limits)
    log: Log = field(default_factory=Log)
    audit: Audit = field(default_factory=Audit)
    downloads: Downloads = field(default_factory=Downloads)
    gc: Gc = field(default_factory=Gc)
    backup: Backup = field(default_factory=Backup)
    retention: Retention = field(default_factory=Retention)
    proxy: Proxy = field(default_factory=Proxy)
    imports: Imports = field(default_factory=Imports)
    twins: Annotated[Mapping[str, Twin], meaning("static twins of repositories, which the server keeps up to date")] = (
        field(default_factory=dict)
    )
    webhooks: Webhooks = field(default_factory=Webhooks)
    advisories: Advisories = field(default_factory=Advisories)
    container: Container = field(default_factory=Container)
    metrics: Metrics = field(default_factory=Metrics)
    traces: Traces = field(default_factory=Traces)
    compat: Compat = field(default_factory=Compat)
    hosts: Annotated[
        Mapping[str, str],
        HOSTS,
        meaning("host names, with their port if it matters, each of which stands for the repository storage/name"),
    ] = field(default_factory=dict)
    aliases: Annotated[
        Mapping[str, str],
        ALIASES,
        meaning('path prefixes such as "/repository/npm-all/", each of which stands for the repository storage/name'),
    ] = field(default_factory=dict)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    origins: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        """Whether the values are equal, whatever their origins."""
        names = [name for name in self.__struct_fields__ if name != "origins"]
        return isinstance(other, Config) and all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.server, self.data))

    @property
    def database_path(self) -> Path | None:
        """The file of the embedded database; None: the database is on a server."""
        if not self.database.url.startswith(SQLITE):
            return None
        return Path(self.database.url.removeprefix(SQLITE).replace("{dir}", str(self.data.dir))).absolute()
