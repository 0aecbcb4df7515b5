"""A format with free paths: ``<package>/<version>/<file>``, where a package's slashes are those of its directory."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import IFormat, IPathFormat, Reader
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages

KEPT = "kept"
NAMES = "name"


@implementer(IFormat, IPathFormat)
class TreeFormat(FormatBase):
    """Its documents list the names of files, and the fragments that clients gave a package."""

    name = "tree"
    aliases = ()
    document_names = ("listing.txt", "same.txt")
    kept_kinds = (KEPT,)

    def index(self, index: PackageIndex, change: Change) -> None:
        for file in change.removed:
            index.remove_fragment(NAMES, b"", file.path)
        for file in change.added:
            index.put_fragment(NAMES, b"", file.path, file.path.encode())

    def package_key(self, name: str) -> str:
        return name

    def version_key(self, text: str) -> str:
        return text

    def directory(self, package_key: str, version: str) -> str:
        return f"{package_key}/{version}" if version else package_key

    def directory_document(self, reader: Reader, repository_id: int, directory: str) -> bytes | None:
        package = packages.find_package(reader, repository_id, directory)
        if package is None:
            return None
        found = [
            each.body for kind in (KEPT, NAMES) for each in index_documents.list_fragments(reader, package.id, kind)
        ]
        return b"\n".join(found) if found else None

    def resource(self, repository: Any, services: Any) -> Any:
        raise NotFound("resource", repository.name)

    def setup(self, base_url: str, repository: Any) -> Any:
        return ()
