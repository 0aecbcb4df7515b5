"""The parts of ``IFormat`` that most formats answer alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pkgrepo.model import Repository

from .configuration import Configurations


class FormatBase:
    """The base of formats: each overrides what it answers differently."""

    configurations: Configurations
    readable_places_vary = False

    def validate(self, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """See L{IFormat.validate}."""
        return self.configurations.validate(config)

    def schema(self) -> Mapping[str, Any]:
        """See L{IFormat.schema}."""
        return self.configurations.schema()

    def check_place(self, storage: str, repository: str) -> None:
        """Accept every place. See L{IFormat.check_place}."""

    def warnings(self, _repository: Repository) -> Sequence[str]:
        """None. See L{IFormat.warnings}."""
        return ()

    def package_of(self, key: str) -> str:
        """The key itself: each package has one document. See L{IIndexedFormat.package_of}."""
        return key

    def document_of(self, package_key: str, _path: str) -> str:
        """The package's key: each package has one document. See L{IIndexedFormat.document_of}."""
        return package_key

    def readable_path(self, path: str) -> str:
        """The public path. See L{IFormat.readable_path}."""
        return path

    def readable_folder(self, package_key: str) -> str:
        """A folder with the package's key as its name. See L{IFormat.readable_folder}."""
        return package_key

    def readable_places(self, _package_key: str, _version: str) -> Sequence[str]:
        """None: files are in the folders of their versions. See L{IFormat.readable_places}."""
        return ()

    def needs_no_credentials(self, _path: bytes) -> bool:
        """No path. See L{IFormat.needs_no_credentials}."""
        return False
