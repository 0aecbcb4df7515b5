"""Archives of one folder, such as packages of sources: a tar, compressed with gzip, of plain files and folders."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.archives.source import Source, check_entry_name
from pkgrepo.archives.streams import Gunzip
from pkgrepo.archives.tar_archive import Tar


def read_one_folder(
    source: Source, wanted: Callable[[str], int | None], *, largest: int | None = None, most: int | None = None
) -> tuple[str, dict[str, bytes]]:
    """
    The name of the folder, and the contents of those of its files that are ``wanted``, by their paths in it.

    ``wanted`` returns the most bytes that these may have, and None for others; all of them together may have ``most``,
    and no file may have more than ``largest``. Names may begin with ``./``, which tar writes for the present folder.
    Blocks: call it in a thread.

    :raises Invalid: the archive is damaged; it has a link, a path outside of its folder, or two files of one name
    """
    folder, size, names, found = "", 0, set[str](), dict[str, bytes]()
    tar = Tar(source, Gunzip(source))
    for member in tar:
        name = member.name.removeprefix("./").rstrip("/")
        if not name and member.is_folder:
            continue
        check_entry_name(source, name)
        top, _, inner = name.partition("/")
        folder = folder or top
        if top != folder or not (inner or member.is_folder):
            raise source.refuse(f"has an entry {name!a} outside of its folder {folder!a}")
        if not member.is_file and not member.is_folder:
            raise source.refuse(f"has a link {name!a}, which clients do not unpack")
        if member.is_file and name.lower() in names:
            raise source.refuse(f"has two entries {name!a}, which some systems take for one")
        if largest is not None and member.size > largest:
            raise source.refuse(f"has a file {name[:100]!a} of more than {largest} bytes, which clients do not read")
        names.add(name.lower())
        limit = wanted(inner) if member.is_file else None
        if limit is not None:
            found[inner] = tar.read(limit)
            size += len(found[inner])
            if most is not None and size > most:
                raise source.refuse(f"has files of more than {most} bytes together where less is allowed")
    return folder, found
