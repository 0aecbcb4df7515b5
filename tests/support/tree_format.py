"""A format with free paths: ``<package>/<version>/<file>``, where a package's slashes are those of its directory."""

from __future__ import annotations

from pkgrepo.interfaces import Reader
from pkgrepo.repositories.configuration import Configurations, HostedConfig
from pkgrepo.repositories.format import StoredFormat, Tree
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages

KEPT = "kept"
NAMES = "name"


def index_names(index: PackageIndex, change: Change) -> None:
    for file in change.removed:
        index.remove_fragment(NAMES, b"", file.path)
    for file in change.added:
        index.put_fragment(NAMES, b"", file.path, file.path.encode())


def directory_document(reader: Reader, repository_id: int, directory: str) -> bytes | None:
    """The names of files, and the fragments that clients gave a package."""
    package = packages.find_package(reader, repository_id, directory)
    if package is None:
        return None
    listed = index_documents.list_fragments
    found = [each.body for kind in (KEPT, NAMES) for each in listed(reader, package.id, kind)]
    return b"\n".join(found) if found else None


TREE = Tree(
    directory=lambda package_key, version: f"{package_key}/{version}" if version else package_key,
    document=directory_document,
    document_names=("listing.txt", "same.txt"),
    kept_kinds=(KEPT,),
    package_of=lambda _reader, _repository_id, path: path.rpartition("/")[0] or None,
)
TREE_FORMAT = StoredFormat(
    name="tree",
    configurations=Configurations("trees", HostedConfig),
    package_key=lambda name: name,
    version_key=lambda text: text,
    index=index_names,
    tree=TREE,
)
