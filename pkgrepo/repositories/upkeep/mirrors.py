"""What is asked of a mirror, and what starts one."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

from attrs import field, frozen

from pkgrepo.model import Actor, Repository

KIND: Final = "mirror"  # of the job


@frozen
class LockFile:
    """A lock file: its name, by which its reader is found, and its text."""

    name: str
    text: str = field(repr=False)


@frozen(kw_only=True)
class MirrorRequest:
    """
    What a repository is to fetch: what ``locks`` name; without any, what the patterns of its configuration do.

    ``only`` are globs of names of files, such as ``*manylinux*x86_64.whl``; none: all that is named.
    """

    locks: Sequence[LockFile] = ()
    only: Sequence[str] = ()


class StartsMirrors(Protocol):
    """Starts mirrors as jobs."""

    def __call__(self, repository: Repository, request: MirrorRequest, actor: Actor, /) -> Awaitable[str]:
        """
        Start a mirror of a repository. Returns the id of the job.

        :raises Invalid: a lock file cannot be read, or there is neither one nor a pattern
        :raises JobRunning: another mirror of the repository runs
        """
