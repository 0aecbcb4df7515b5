"""Files of upstreams that are not kept yet."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.model import Repository

from .parts.values import Entry, FileSource


@frozen(eq=False)
class RemoteFile:
    """A file that an upstream has and that is not kept yet, in the proxy that serves it."""

    repository: Repository
    key: str
    route: str
    source: FileSource
    entry: Entry
