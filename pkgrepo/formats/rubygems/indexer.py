"""What every change of a gem does in its transaction, whatever asked for it: a push, a yank, the API or a reindex."""

from __future__ import annotations

from pkgrepo.formats.rubygems.api.records import latest_version, put_row
from pkgrepo.formats.rubygems.index.indexing import index_gem
from pkgrepo.formats.rubygems.names import spelling
from pkgrepo.formats.rubygems.paths import hidden_path, public_path
from pkgrepo.model import File, VersionState
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.owners import owners_of
from pkgrepo.storage.catalog.packages import files, packages


def apply_change(index: PackageIndex, change: Change) -> None:
    """
    Hide or show the files of a version by its state, record the spelling of a new gem, and update the indexes, the
    search row and the latest version.

    :raises FileExists: another gem was published under the name of a file that is to be shown again
    """
    package = index.package
    if change.added:
        packages.put_spelling(index.tx, package.repository_id, package.id, spelling(package.name))
    if change.version is not None and not change.added and not change.removed:
        _place_files(index, index.files(change.version), hidden=change.version.state is VersionState.YANKED)
    index_gem(index, change)
    if not change.last:
        latest = latest_version(index.tx, package.id)
        text = None if latest is None else latest.text
        if text != package.latest:
            packages.set_latest(index.tx, package.id, text)
        put_row(index, latest, owners_of(index.tx, package))


def _place_files(index: PackageIndex, held: list[File], *, hidden: bool) -> None:
    for file in held:
        path = hidden_path(file.path) if hidden else public_path(file.path)
        if path != file.path:
            files.move_file(index.tx, file, path)
