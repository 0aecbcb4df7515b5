"""What the tests that are written once for all formats ask about one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from tests.support.memory_server import Reply

Send = Callable[..., Awaitable[Reply]]  # of method, path below a repository, bytes, and media type as ``kind``


@frozen(kw_only=True)
class Case:
    """
    A package of a format: how clients publish it, and what they read of it.

    ``publish`` publishes the package ``name``, ``demo`` as far as the format allows that, in a version before the
    ``version`` and in that one, which is the highest release. ``documents`` are the paths of those about the package,
    the first of which has the bytes ``shown`` if and only if it lists the version. ``files`` are the paths of files of
    the version, ``older`` is one of the version before. ``beside`` are further addresses of the first file, or of what
    belongs to it: all are refused like it. ``upstream`` is behind the address of a repository that is an upstream.
    """

    publish: Callable[[Send], Awaitable[None]]
    name: str = "demo"
    version: str
    documents: tuple[str, ...]
    shown: bytes
    files: tuple[str, ...]
    older: str
    beside: tuple[str, ...] = ()
    upstream: str = "/"
