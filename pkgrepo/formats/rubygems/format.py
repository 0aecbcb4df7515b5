"""The Ruby gem format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import IFormat
from pkgrepo.model import Repository
from pkgrepo.proxy.publishing import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, PackageIndex

from . import layout
from .changes import apply_change
from .configuration import CONFIGURATIONS
from .names import check_full_version, check_name
from .routes import RubySite
from .setup import snippets


@implementer(IFormat)
class RubyFormat(FormatBase):
    """The server that gem and Bundler talk to."""

    name = "ruby"
    aliases = ("rubygems", "gem")
    configurations = CONFIGURATIONS

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return RubySite(services, repository).resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        apply_change(index, change)

    def package_key(self, name: str) -> str:
        """The name itself, which is its own key. See L{IFormat.package_key}."""
        return check_name(name)

    def version_key(self, text: str) -> str:
        """The full version itself. See L{IFormat.version_key}."""
        return check_full_version(text)

    def readable_path(self, path: str) -> str:
        """See L{IFormat.readable_path}."""
        return layout.readable_path(path)

    def readable_folder(self, package_key: str) -> str:
        """See L{IFormat.readable_folder}."""
        return layout.readable_folder(package_key)

    def readable_places(self, package_key: str, version: str) -> Sequence[str]:
        """See L{IFormat.readable_places}."""
        return layout.readable_places(package_key, version)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))
