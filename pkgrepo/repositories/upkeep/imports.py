"""What is asked of an import, and what starts one."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol

from attrs import field, frozen

from pkgrepo.model import Actor, Repository

KIND: Final = "import"  # of the job


@frozen(kw_only=True)
class ImportRequest:
    """
    Packages of a ``source``, an address or the path of a folder, that are to be taken in.

    ``username`` and ``secret`` are credentials for the host of the address: with an empty user name the secret is a
    token. They are in memory until the import ends, and in no log. ``only`` are globs of names of packages that are
    taken; none: all. ``names`` are those of packages, for a source that does not list them. ``renamed`` are pairs of
    the beginning of names there and of names here, for images. With ``again`` packages are compared with what is here
    although nothing has changed at the source. ``repositories`` are those of the source, where it has several.
    ``follow_links``: symbolic links in a folder with Maven's layout are followed, also out of the folder. ``keys`` are
    those (PEM) of which one has to have signed a bundle; without any those of the settings.
    """

    kind: str
    source: str
    username: str = ""
    secret: str = field(default="", repr=False)
    only: Sequence[str] = ()
    names: Sequence[str] = ()
    renamed: Mapping[str, str] = field(factory=dict)
    repositories: Sequence[str] = ()
    follow_links: bool = False
    dry_run: bool = False
    again: bool = False
    keys: Sequence[str] = ()

    @property
    def is_remote(self) -> bool:
        """Whether the source is an address."""
        return self.source.startswith(("http://", "https://"))


@frozen(kw_only=True)
class SourceKind:
    """
    A kind of source: ``addresses`` and ``folders`` are formats of repositories into which one is taken in.

    ``one_repository`` says what a request has to name in ``repositories``; empty: nothing.
    """

    name: str
    about: str
    one_repository: str
    addresses: Sequence[str]
    folders: Sequence[str]


class StartsImports(Protocol):
    """Starts imports as jobs. ``kinds`` are those of sources, by their names."""

    @property
    def kinds(self) -> Sequence[SourceKind]:
        """The kinds of sources that can be imported."""

    def __call__(self, repository: Repository, request: ImportRequest, actor: Actor, /) -> Awaitable[str]:
        """
        Start an import into a repository. Returns the id of the job.

        :raises Invalid: there is no such kind, or the source or the repository is none for it
        :raises Forbidden: it is a folder that the server may not read
        :raises JobRunning: another import into the repository runs
        """
