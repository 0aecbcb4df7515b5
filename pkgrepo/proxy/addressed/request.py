"""Questions for files by their paths."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class FileRequest:
    """
    One file of an upstream: ``path`` is decoded, below the URL of a route as below the address of the repository.

    ``package_key`` and the version are those that it belongs to; empty for a file that belongs to none. All files of
    one version come from one route.

    A ``lasting`` file never changes, and is kept as a file of the package. Another one is asked for again after
    ``cache_ttl``, and after ``most_ttl_s`` seconds at most. With ``of_one_route`` it tells what a whole upstream has,
    so that it is wrong where several are behind one address.

    ``algorithms`` are digests to compute (names of C{hashlib}). If an upstream announces none of them in the header of
    its answer, those of ``companions`` are asked for: the suffix of each is a dot and its name.
    """

    path: str
    media_type: str
    package_key: str = ""
    version_key: str = ""
    version_text: str = ""
    sort: bytes = b""
    lasting: bool = True
    most_ttl_s: int | None = None
    of_one_route: bool = False
    algorithms: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of what is remembered about the file, among those of the documents of the proxy."""
        return f"file/{self.path}"

    @property
    def filename(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]
