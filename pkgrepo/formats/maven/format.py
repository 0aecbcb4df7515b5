"""The Maven format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.application.service import IService
from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.formats.maven.deploy.running import Running, StopWithServer
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import IBackgroundFormat, IFormat, IPathFormat, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.publishing import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, PackageIndex

from .configuration import CONFIGURATIONS
from .names import package_directory, parse_package_key, parse_version
from .paths import METADATA_NAMES
from .routes import MavenSite
from .setup import snippets


@implementer(IFormat, IBackgroundFormat, IPathFormat)
class MavenFormat(FormatBase):
    """Artifacts for Maven, Gradle, Ivy and sbt, in the Maven 2 repository layout."""

    name = "maven"
    aliases = ("java",)
    configurations = CONFIGURATIONS
    document_names = METADATA_NAMES
    kept_kinds = ()

    def __init__(self) -> None:
        self._running = Running()

    def background_services(self, _services: Services, _reactor: Any) -> Sequence[IService]:
        """The work on deployments. See L{IBackgroundFormat.background_services}."""
        return [StopWithServer(self._running)]

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return MavenSite(services, repository, self.index, self._running).resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""

    def package_key(self, name: str) -> str:
        """See L{IFormat.package_key}."""
        return parse_package_key(name)

    def version_key(self, text: str) -> str:
        """See L{IFormat.version_key}."""
        return parse_version(text)

    def directory(self, package_key: str, version: str) -> str:
        """See L{IPathFormat.directory}."""
        top = package_directory(package_key)
        return f"{top}/{version}" if version else top

    def directory_document(self, _reader: Reader, _repository_id: int, _directory: str) -> bytes | None:
        """See L{IPathFormat.directory_document}."""
        return None

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))
