"""The conda format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.application.service import IService
from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.formats.conda.index.caches import IndexCaches
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.formats.conda.wheels.following import WheelFollower
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import IBackgroundFormat, ICompanionFormat, IFormat
from pkgrepo.model import Repository
from pkgrepo.proxy.publishing import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, PackageIndex

from . import layout
from .configuration import CONFIGURATIONS, companion_config
from .names import check_name, version_key
from .routes import CondaSite
from .setup import install_snippets, snippets


@implementer(IFormat, ICompanionFormat, IBackgroundFormat)
class CondaFormat(FormatBase):
    """A channel that conda, mamba and pixi install from."""

    name = "conda"
    aliases = ()
    configurations = CONFIGURATIONS
    readable_places_vary = True
    companion_of = ("python",)
    segment = "conda"

    def __init__(self) -> None:
        self._caches = IndexCaches()

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return CondaSite(services, repository, self._caches).resource()

    def companion_config(self, parent: Repository, _companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
        """See L{ICompanionFormat.companion_config}. A virtual repository has no channel."""
        return companion_config(parent)

    def background_services(self, services: Services, reactor: Any) -> Sequence[IService]:
        """The conversion of wheels. See L{IBackgroundFormat.background_services}."""
        return [WheelFollower(services, self.name).service(reactor)]

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        index_package(index, change)

    def package_key(self, name: str) -> str:
        """The name itself, which is its own key. See L{IFormat.package_key}."""
        return check_name(name)

    def version_key(self, text: str) -> str:
        """The version in lower case. See L{IFormat.version_key}."""
        return version_key(text)

    def readable_folder(self, package_key: str) -> str:
        """See L{IFormat.readable_folder}."""
        return layout.readable_folder(package_key)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(f"{base_url}/repositories/{repository.path}", name, version)
