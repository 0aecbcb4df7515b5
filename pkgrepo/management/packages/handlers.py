"""Finds the package and the version that the path of a call names."""

from __future__ import annotations

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.call import Call
from pkgrepo.model import Package, Version
from pkgrepo.storage.catalog.packages import packages, versions


async def find_package(call: Call) -> Package:
    """The package that the path names. :raises NotFound: there is none"""
    package: Package | None = await call.catalog.look(packages.find_package, call.repository.id, call.package or "")
    if package is None:
        raise NotFound("package", call.package or "")
    return package


async def find_version(call: Call, text: str) -> tuple[Package, Version]:
    """The version that the path names, with its package. :raises NotFound: there is none"""
    package = await find_package(call)
    try:
        key = call.services.formats[call.repository.format].version_key(text)
    except Invalid:
        raise NotFound("version", text) from None
    version: Version | None = await call.catalog.look(versions.find_version, package.id, key)
    if version is None:
        raise NotFound("version", text)
    call.object = f"{call.repository.path}/{package.key}@{version.text}"
    return package, version
