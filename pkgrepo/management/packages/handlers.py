"""The base of the classes that answer requests for packages."""

from __future__ import annotations

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Package, Version
from pkgrepo.storage.catalog.packages import packages, versions

from .images import Images


class PackageHandlers(Handlers):
    """Finds the package and the version that the path of a call names; those of images are in ``_images``."""

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._images = Images(services)

    async def _find_package(self, call: Call) -> Package:
        """The package that the path names. :raises NotFound: there is none"""
        package: Package | None = await self._catalog.look(
            packages.find_package, call.repository.id, call.package or ""
        )
        if package is None:
            raise NotFound("package", call.package or "")
        return package

    async def _find_version(self, call: Call, text: str) -> tuple[Package, Version]:
        """The version that the path names, with its package. :raises NotFound: there is none"""
        package = await self._find_package(call)
        try:
            key = self._services.formats[call.repository.format].version_key(text)
        except Invalid:
            raise NotFound("version", text) from None
        version: Version | None = await self._catalog.look(versions.find_version, package.id, key)
        if version is None:
            raise NotFound("version", text)
        call.object = f"{call.repository.path}/{package.key}@{version.text}"
        return package, version
