"""Sources of which a registry's own API knows more than its clients' protocol: names, times, publishers, states."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from attrs import evolve
from twisted.internet.defer import DeferredLock

from pkgrepo.errors import NotFound
from pkgrepo.gateway.imported.items import Facts, Item, Source, SourcePackage, downloads_of
from pkgrepo.gateway.imported.places import Folder
from pkgrepo.model import VersionState

T = TypeVar("T")

MOST: Final = 2**53  # that a count may be: more is no number of JSON for many programs


class Once(Generic[T]):
    """A value that is made when it is first asked for, once, by however many ask at the same time."""

    def __init__(self) -> None:
        self._lock = DeferredLock()
        self._made: list[T] = []

    async def get(self, make: Callable[[], Awaitable[T]]) -> T:
        """The value, which ``make`` makes if it is not there yet."""
        await self._lock.acquire()
        try:
            if not self._made:
                self._made.append(await make())
            return self._made[0]
        finally:
            self._lock.release()


class Named:
    """A source of which packages are taken by their names, whether or not it lists them."""

    def __init__(self, inner: Source, names: Sequence[str]) -> None:
        self._inner = inner
        self._names = names

    async def names(self) -> AsyncIterator[str]:
        """The names, each once."""
        for name in dict.fromkeys(self._names):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """What there is of a package."""
        return await self._inner.package(name)


def with_names(source: Source, names: Sequence[str]) -> Source:
    """The source, or only the packages with these names, if there are any."""
    return Named(source, names) if names else source


class WithLeftOut:
    """A source that is a folder, with what it leaves out: that is a package without a name, which comes last."""

    def __init__(self, inner: Source, folder: Folder) -> None:
        self._inner = inner
        self._folder = folder

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages, and an empty one if something is left out."""
        async for name in self._inner.names():
            yield name
        if self._folder.left_out:
            yield ""

    async def package(self, name: str) -> SourcePackage:
        """What there is of a package, or what is left out."""
        if name or not self._folder.left_out:  # without a name: the files at the root of a repository of Java
            return await self._inner.package(name)
        left_out = sorted(self._folder.left_out.items())
        mark = hashlib.sha256(repr(left_out).encode()).hexdigest()
        return SourcePackage(name="", key="", fingerprint=mark, items=(), left_out=left_out)


class Described:
    """
    A source with what an API says of its packages.

    ``list_names`` are the names of the packages; None: the source lists them. ``facts`` are those of a package.
    """

    def __init__(
        self,
        inner: Source,
        facts: Callable[[str], Awaitable[Facts]],
        list_names: Callable[[], AsyncIterator[str]] | None = None,
    ) -> None:
        self._inner = inner
        self._facts = facts
        self._list_names = list_names or inner.names

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages."""
        async for name in self._list_names():
            yield name

    async def package(self, name: str) -> SourcePackage:
        """What there is of a package."""
        facts = await self._facts(name)
        try:
            source_package = await self._inner.package(name)
        except NotFound:
            if not _is_withdrawn(facts):
                raise
            source_package = SourcePackage(name=name, key=name, fingerprint="", items=())
        # also of versions without files: a gem server has none of what was yanked
        states = {text: fact.state for text, fact in facts.items() if text and fact.state is not None}
        said = f"{source_package.fingerprint} {sorted((text, repr(fact)) for text, fact in facts.items() if text)}"
        return evolve(
            source_package,
            items=[_with_fact(each, facts) for each in source_package.items],
            states={**source_package.states, **states},
            fingerprint=hashlib.sha256(said.encode()).hexdigest(),
            downloads=downloads_of(source_package.items, facts),
        )


def _is_withdrawn(facts: Facts) -> bool:
    """Whether the API knows of versions, of which each was yanked."""
    states = [fact.state for text, fact in facts.items() if text]
    return bool(states) and all(each is not None and each[0] is VersionState.YANKED for each in states)


def _with_fact(item: Item, facts: Facts) -> Item:
    fact = facts.get(item.name) or facts.get(item.version)
    if fact is None:
        return item
    return evolve(
        item,
        published_ms=item.published_ms if fact.published_ms is None else fact.published_ms,
        publisher=fact.publisher or item.publisher,
        digests={**fact.digests, **item.digests},
    )


def text_of(value: Any) -> str:
    """A text of an API; empty for anything else."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """A count of an API; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST else 0


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list of an API; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def digests_of(value: Any, names: Mapping[str, str]) -> dict[str, str]:
    """The digests in an object of an API, by ``hashlib`` name; ``names`` maps the members that have them to these."""
    if not isinstance(value, dict):
        return {}
    found = {algorithm: text_of(value.get(member)).lower() for member, algorithm in names.items()}
    return {algorithm: text for algorithm, text in found.items() if len(text) == 2 * hashlib.new(algorithm).digest_size}
