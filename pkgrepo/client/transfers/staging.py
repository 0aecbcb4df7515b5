"""The files of a staging folder that go into a bundle, and their zip archive, written while it is read."""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

PIECE: Final = 256 * 1024  # bytes
PACKED: Final = frozenset({"jar", "war", "ear", "aar", "zip", "gz", "tgz", "xz", "bz2"})  # stored as they are
# group/artifact/version/artifact-version[-classifier].extension; a build of a snapshot has its time and number instead
ARTIFACT: Final = re.compile(
    r"([^/.:]+/)+(?P<artifact>[^/:]+)/"
    r"((?P<version>[^/:]+)/(?P=artifact)-(?P=version)"
    r"|(?P<base>([^/:]*-)?)(?i:SNAPSHOT)/(?P=artifact)-(?P=base)[0-9]{8}\.[0-9]{6}-[0-9]+)"
    r"(-[^./]+)?(\.[^./]+)+"
)
METADATA: Final = re.compile(r"(.*/)?(maven|repo)-metadata\.xml(\.(md5|sha1|sha256|sha512))?")
TIME: Final = (1980, 1, 1, 0, 0, 0)  # of all entries, so that the same files give the same archive


@frozen
class StagedFile:
    """A file of the folder; ``path`` is the one in the bundle, with slashes, and ``size`` in bytes."""

    path: str
    file: Path
    size: int


@frozen
class Staging:
    """The files that go into the bundle, and the paths of those that do not; both are sorted."""

    files: tuple[StagedFile, ...]
    left_out: tuple[str, ...]


def read_staging(folder: Path) -> Staging:
    """
    The content of a staging folder in the Maven layout.

    Metadata is left out silently, because the server makes it. Other files that belong to no artifact, such as those
    in which Maven keeps notes, and links are left out too, and named.

    :raises OSError: the folder cannot be read
    """
    files: list[StagedFile] = []
    left_out: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=_fail):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            path = file.relative_to(folder).as_posix()
            found = file.lstat()
            is_metadata = METADATA.fullmatch(path) is not None
            if not stat.S_ISREG(found.st_mode) or not (is_metadata or ARTIFACT.fullmatch(path)):
                left_out.append(path)
            elif not is_metadata:
                files.append(StagedFile(path, file, found.st_size))
    return Staging(tuple(sorted(files, key=lambda each: each.path)), tuple(sorted(left_out)))


def _fail(error: OSError) -> None:
    raise error


def zip_pieces(files: Iterable[StagedFile], on_file: Callable[[], None]) -> Iterator[bytes]:
    """
    Yield an archive of the files in pieces; ``on_file`` is called after each file.

    :raises OSError: a file cannot be read
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for each in files:
            entry = zipfile.ZipInfo(each.path, TIME)
            packed = each.path.rpartition(".")[2].lower() in PACKED
            entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            entry.file_size = each.size  # decides whether the entry needs 64-bit sizes
            with each.file.open("rb") as content, archive.open(entry, "w") as target:
                while piece := content.read(PIECE):
                    target.write(piece)
                    if len(sink) >= PIECE:
                        yield sink.take()
            on_file()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file that cannot seek; what was written is taken from it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False, so that sizes and checksums stand behind the data of each entry."""
        return False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Keep bytes until they are taken."""
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def take(self) -> bytes:
        """What was written since the last call."""
        parts, self._parts, self._size = self._parts, [], 0
        return b"".join(parts)
