"""
Images with more in them than should be read at once, in the readable layout: shown part by part.

The first time that an image is met after the start it is compared as a whole, a page after the other. From then on its
directory is known to show what the events told, and only what later ones name is touched. A crash, or a failure,
forgets that it is known.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from itertools import islice

from pkgrepo.errors import BlobMissing, Invalid
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.repositories.layout.line_documents import Form, K, LineWriter, open_document
from pkgrepo.repositories.layout.writer import Plan
from pkgrepo.storage.catalog.images import contents as image_contents
from pkgrepo.storage.catalog.images.contents import Named, StoredTag
from pkgrepo.storage.layout_folder import Draft, LayoutFolder
from pkgrepo.storage.pools import Pools

from .changes import Changed, ImageChanges, read_before, read_changed, widen
from .directory import INDEX_FORM, MARKED, ImageLayoutWriter, index_entry, loose_key, tag_index_entries, tag_key
from .sidecars import tag_entry, tags_form

PAGE = 100  # manifests at a time, with their blobs; some 20 ms of a fast disk
LINES = 1000  # tags and names at a time, of which nothing but a line is made
MOST_KNOWN = 10_000  # images that are known to be shown; one that is forgotten is compared again

_Known = tuple[int, str, str]  # catalog key and name of the repository, and the image


class LargeImages:
    """Shows images that are not read at once, or are gone."""

    def __init__(self, catalog: ICatalog, pools: Pools) -> None:
        self._catalog = catalog
        self._pools = pools
        self._known: dict[_Known, None] = {}
        self.written = 0  # bytes of documents so far

    async def show(self, writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> None:
        """
        Make an image's directory show it, which showed it before these changes.

        :raises OSError: it cannot be written; :raises BlobMissing: something of it is not there
        """
        known = _known(writer, image)
        if known in self._known:
            with suppress(Invalid, OSError, BlobMissing):
                if await self._show_changes(writer, image, changes):
                    return
            del self._known[known]
        async with aclosing(self.differences(writer, image)) as plans:
            async for plan in plans:
                await self._pools.disk(writer.apply, plan)
        if len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[known] = None

    def forget(self, writer: ImageLayoutWriter, image: str) -> None:
        """Compare an image as a whole when it comes next."""
        self._known.pop(_known(writer, image), None)

    def forget_all(self) -> None:
        """The same with every image."""
        self._known.clear()

    async def differences(self, writer: ImageLayoutWriter, image: str) -> AsyncGenerator[Plan, None]:
        """
        What it would take to make an image's directory show it, in plans to carry out one after the other or not.

        Close it (C{aclosing}) when it is not read to its end.
        """
        after = ""
        while page := await self._catalog.scan(writer.read_manifests, image, after, PAGE):
            yield await self._pools.disk(writer.plan_manifests, image, page)
            after = page[-1].digest
        if after:
            async with aclosing(self._documents(writer, image)) as plans:
                async for plan in plans:
                    yield plan
        present = await self._pools.disk(_present, writer, image, gone=not after)
        while some := await self._pools.disk(_some, present, LINES):
            wanted = await self._catalog.scan(_parts, writer, image, sorted({digest for digest, _ in some}))
            doomed = tuple(place for digest, place in some if digest not in wanted)
            if doomed:
                yield Plan(doomed=doomed)

    async def _documents(self, writer: ImageLayoutWriter, image: str) -> AsyncGenerator[Plan, None]:
        """The documents about the whole image, written anew to be compared."""
        places = writer.places(image)
        yield await self._pools.disk(writer.plan_documents, {places.mark: MARKED})
        drafts = await self._pools.disk(_Drafts, writer, image)
        try:
            after = ""
            while tags := await self._catalog.scan(_tags, writer, image, after):
                await self._pools.disk(drafts.add_tags, tags)
                after = tags[-1].name
            after = ""
            while loose := await self._catalog.scan(_loose, writer, image, after):
                await self._pools.disk(drafts.add_loose, loose)
                after = loose[-1].digest
            yield Plan(drafts=await self._pools.disk(drafts.end))
        finally:
            self.written += await self._pools.disk(drafts.discard)

    async def _show_changes(self, writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> bool:
        """Touch no more than what changed; False when that cannot be."""
        wider = await self._catalog.scan(widen, writer, image, changes)
        if wider is None:
            return False
        before = await self._pools.disk(read_before, writer, image, wider)
        changed = await self._catalog.scan(read_changed, writer, image, wider, before)
        if changed is None:
            return False
        self.written += await self._pools.disk(_show_changed, writer, image, changed)
        return True


class _Drafts:
    """The index and the sidecar of an image while they are written."""

    def __init__(self, writer: ImageLayoutWriter, image: str) -> None:
        self._layout = writer.layout
        self._places = writer.places(image)
        with ExitStack() as begun:
            self._index = self._layout.draft()
            begun.callback(self._index.discard)
            self._sidecar = self._layout.draft()
            begun.callback(self._sidecar.discard)
            self._index_lines = LineWriter(INDEX_FORM, self._index)
            self._sidecar_lines = LineWriter(tags_form(image), self._sidecar)
            begun.pop_all()

    def add_tags(self, tags: Sequence[StoredTag]) -> None:
        self._index_lines.add(list(tag_index_entries(tags)))
        self._sidecar_lines.add([tag_entry(each) for each in tags])

    def add_loose(self, loose: Sequence[Named]) -> None:
        self._index_lines.add([index_entry(each) for each in loose])

    def end(self) -> tuple[tuple[str, str], ...]:
        """Those that differ from what is shown, with their places."""
        self._index_lines.end()
        self._sidecar_lines.end()
        self._index.close()
        self._sidecar.close()
        both = ((self._sidecar.path, self._places.sidecar), (self._index.path, self._places.index))
        return tuple((draft, place) for draft, place in both if self._layout.differs(draft, place))

    def discard(self) -> int:
        """Forget what was not put in its place; how many bytes were written."""
        self._index.discard()
        self._sidecar.discard()
        return self._index.size + self._sidecar.size


def _show_changed(writer: ImageLayoutWriter, image: str, changed: Changed) -> int:
    """Touch what changed; how many bytes of documents were written for it."""
    layout, places = writer.layout, writer.places(image)
    tags = {name: None if tag is None else tag_entry(tag) for name, tag in changed.tags.items()}
    index = {
        tag_key(name): next(tag_index_entries([] if tag is None else [tag]), None) for name, tag in changed.tags.items()
    }
    index.update(
        (loose_key(digest), None if named is None else index_entry(named)) for digest, named in changed.loose.items()
    )
    parts = writer.plan_manifests(image, changed.manifests)
    with ExitStack() as stack:
        drafts = [
            *_change(stack, layout, tags_form(image), places.sidecar, tags),
            *_change(stack, layout, INDEX_FORM, places.index, index),
        ]
        writer.apply(
            Plan(
                links=parts.links,
                documents=parts.documents,
                drafts=tuple((draft.path, place) for draft, place in drafts),
                doomed=(
                    *(places.sidecar_of(digest) for digest in changed.gone),
                    *(places.bytes_of(digest) for digest in changed.superfluous),
                ),
            )
        )
        return sum(draft.size for draft, _ in drafts)


def _change(
    stack: ExitStack, layout: LayoutFolder, form: Form[K], place: str, changes: Mapping[K, bytes | None]
) -> Iterator[tuple[Draft, str]]:
    """A document with some entries changed, as a draft that is forgotten with the stack; none where nothing differs."""
    with open_document(form, layout.file(place)) as document:
        draft = layout.draft()
        stack.callback(draft.discard)
        differs = document.write_changed(changes, draft)
    draft.close()
    if differs:
        yield draft, place


def _present(writer: ImageLayoutWriter, image: str, *, gone: bool) -> Iterator[tuple[str, str]]:
    """
    Every file of an image with the digest that it stands for; of one that is gone all files.

    What stands for none comes first: an index must not outlive what it names.
    """
    places = writer.places(image)
    kept = () if gone else (places.mark, places.index, places.sidecar)
    for name in writer.layout.names(places.top):
        place = f"{places.top}/{name}"
        if place not in kept:
            yield "", place
    for folder, algorithm, ending in places.folders:
        for name in writer.layout.names(folder):
            yield f"{algorithm}:{name.removesuffix(ending)}" if name.endswith(ending) else "", f"{folder}/{name}"


def _some(present: Iterator[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    return list(islice(present, count))


def _parts(reader: Reader, writer: ImageLayoutWriter, image: str, digests: Sequence[str]) -> set[str]:
    package_id = writer.package_id(reader, image)
    if package_id is None:
        return set()
    return image_contents.find_parts(reader, writer.repository.storage_id, package_id, digests)


def _tags(reader: Reader, writer: ImageLayoutWriter, image: str, after: str) -> list[StoredTag]:
    package_id = writer.package_id(reader, image)
    return [] if package_id is None else image_contents.tags_after(reader, package_id, after, LINES)


def _loose(reader: Reader, writer: ImageLayoutWriter, image: str, after: str) -> list[Named]:
    package_id = writer.package_id(reader, image)
    return [] if package_id is None else image_contents.loose_after(reader, package_id, after, LINES)


def _known(writer: ImageLayoutWriter, image: str) -> _Known:
    return (writer.repository.id, writer.repository.name, image)
