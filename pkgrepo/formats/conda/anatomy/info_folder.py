"""The documents in the ``info`` folder of a tar archive."""

from __future__ import annotations

from typing import Final

from pkgrepo.archives.source import Source, check_entry_name
from pkgrepo.archives.tar_archive import Member, Stream, Tar
from pkgrepo.formats.conda.limits import ABOUT_SIZE, EXPORTS_SIZE, INDEX_SIZE

INDEX: Final = "info/index.json"
ABOUT: Final = "info/about.json"
EXPORTS: Final = "info/run_exports.json"
LIMITS: Final = {INDEX: INDEX_SIZE, ABOUT: ABOUT_SIZE, EXPORTS: EXPORTS_SIZE}  # bytes

_FOLDER: Final = "info/"


def read_info(source: Source, stream: Stream, *, whole: bool) -> dict[str, bytes]:
    """
    The documents by their paths.

    With ``whole`` the archive must have nothing but the folder, and is read to its end. Otherwise the reading stops
    behind the folder: the tools write it first.

    :raises Invalid: the archive is damaged, has no ``index.json``, or has a document twice
    """
    found: dict[str, bytes] = {}
    tar = Tar(source, stream)
    for member in tar:
        name = member.name.removeprefix("./")
        if not name.startswith(_FOLDER) and name + "/" not in (_FOLDER, "./", "/"):
            if INDEX in found and not whole:
                break
            if whole:
                raise source.refuse(f"has a member {name[:100]!a} in its info archive, which is not in the folder info")
            continue
        if not member.is_folder:
            check_entry_name(source, name)
        if name in LIMITS:
            _check_document(source, member, name, found)
            found[name] = tar.read(LIMITS[name])
    if INDEX not in found:
        raise source.refuse(f"has no {INDEX}")
    return found


def _check_document(source: Source, member: Member, name: str, found: dict[str, bytes]) -> None:
    if not member.is_file:
        raise source.refuse(f"has a {name} that is no file")
    if name in found:
        raise source.refuse(f"has {name} twice")
