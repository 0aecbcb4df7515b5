"""
Updates the directories of images that are too large to be read at once.

The first time after the start an image is compared as a whole, page by page. From then on its directory is known to be
up to date, and only the files that later events affect are written. After a failure the whole image is compared again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from itertools import islice

from pkgrepo.archives.image_layout import LAYOUT_CONTENT
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import BlobMissing, Invalid
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.repositories.layout.images.directory import tag_entry, tags_form
from pkgrepo.repositories.layout.line_documents import Form, K, LineWriter, open_document
from pkgrepo.repositories.layout.writer import Plan
from pkgrepo.storage.catalog.images import contents
from pkgrepo.storage.catalog.images.contents import Descriptor, StoredTag
from pkgrepo.storage.layout_folder import Draft, LayoutFolder

from .changes import Changed, ImageChanges, read_before, read_changed, resolve_changes
from .directory import INDEX_FORM, ImageLayoutWriter, index_entry, loose_key, tag_index_entries, tag_key

PAGE = 100  # manifests at a time, with their blobs; some 20 ms of a fast disk
LINES = 1000  # tags, loose manifests or file names at a time
MAX_KNOWN = 10_000  # images that are remembered as up to date; others are compared again

_Known = tuple[int, str, str]  # id and name of the repository, and name of the image


class LargeImages:
    """Shows large images, and removes the directories of images that do not exist any more."""

    def __init__(self, catalog: ICatalog, pools: Pools) -> None:
        self._catalog = catalog
        self._pools = pools
        self._known: dict[_Known, None] = {}
        self.written = 0  # bytes of documents written so far

    async def show(self, writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> None:
        """
        Make an image's directory show it; ``changes`` are those since the directory was up to date.

        :raises OSError: it cannot be written; :raises BlobMissing: a blob of the image is missing
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
        if len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[known] = None

    def forget(self, writer: ImageLayoutWriter, image: str) -> None:
        """Compare an image as a whole the next time."""
        self._known.pop(_known(writer, image), None)

    def forget_all(self) -> None:
        """Compare every image as a whole the next time."""
        self._known.clear()

    async def differences(self, writer: ImageLayoutWriter, image: str) -> AsyncGenerator[Plan, None]:
        """
        Compare a whole image with its directory, and yield plans of the changes that would make it up to date.

        The plans may be applied or not. Close the generator (``aclosing``) if it is not read to its end.
        """
        after = ""
        while page := await self._catalog.scan(writer.read_manifests, image, after, PAGE):
            yield await self._pools.disk(writer.plan_manifests, image, page)
            after = page[-1].digest
        if after:
            async with aclosing(self._documents(writer, image)) as plans:
                async for plan in plans:
                    yield plan
        removed = {} if after else await self._catalog.scan(writer.read_removed, image)
        if removed:
            yield await self._pools.disk(writer.plan_documents, removed)
        present = await self._pools.disk(_present, writer, image, None if after else removed)
        while some := await self._pools.disk(_some, present, LINES):
            wanted = await self._catalog.scan(_parts, writer, image, sorted({digest for digest, _ in some}))
            removals = tuple(place for digest, place in some if digest not in wanted)
            if removals:
                yield Plan(removals=removals)

    async def _documents(self, writer: ImageLayoutWriter, image: str) -> AsyncGenerator[Plan, None]:
        """Write the index and the tags of the whole image into temporary files, and compare these."""
        places = writer.places(image)
        yield await self._pools.disk(writer.plan_documents, {places.layout_file: LAYOUT_CONTENT})
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
        """Write only the files that the changes affect. Returns False if the whole image must be compared."""
        resolved = await self._catalog.scan(resolve_changes, writer, image, changes)
        if resolved is None:
            return False
        before = await self._pools.disk(read_before, writer, image, resolved)
        changed = await self._catalog.scan(read_changed, writer, image, resolved, before)
        if changed is None:
            return False
        self.written += await self._pools.disk(_show_changed, writer, image, changed)
        return True


class _Drafts:
    """The index and the sidecar of an image in temporary files."""

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

    def add_loose(self, loose: Sequence[Descriptor]) -> None:
        self._index_lines.add([index_entry(each) for each in loose])

    def end(self) -> tuple[tuple[str, str], ...]:
        """Complete the files. Returns those that differ from the present ones, with their places."""
        self._index_lines.end()
        self._sidecar_lines.end()
        self._index.close()
        self._sidecar.close()
        both = ((self._sidecar.path, self._places.sidecar), (self._index.path, self._places.index))
        return tuple((draft, place) for draft, place in both if self._layout.differs(draft, place))

    def discard(self) -> int:
        """Remove the temporary files that are left. Returns the number of bytes written."""
        self._index.discard()
        self._sidecar.discard()
        return self._index.size + self._sidecar.size


def _show_changed(writer: ImageLayoutWriter, image: str, changed: Changed) -> int:
    """Write the files that changed. Returns the number of bytes of documents."""
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
                removals=(
                    *(places.sidecar_of(digest) for digest in changed.gone),
                    *(places.bytes_of(digest) for digest in changed.superfluous),
                ),
            )
        )
        return sum(draft.size for draft, _ in drafts)


def _change(
    stack: ExitStack, layout: LayoutFolder, form: Form[K], place: str, changes: Mapping[K, bytes | None]
) -> Iterator[tuple[Draft, str]]:
    """Yield a changed copy of a document as a draft, which the stack removes; nothing if no entry differs."""
    with open_document(form, layout.file(place)) as document:
        draft = layout.draft()
        stack.callback(draft.discard)
        differs = document.write_changed(changes, draft)
    draft.close()
    if differs:
        yield draft, place


def _present(writer: ImageLayoutWriter, image: str, removed: Mapping[str, bytes] | None) -> Iterator[tuple[str, str]]:
    """
    Iterate over the files of an image as (digest, place); of a removed one over all files but the ``removed`` places.

    Files without a digest come first, because an index must not stay longer than the files that it refers to.
    """
    places = writer.places(image)
    kept = (places.layout_file, places.index, places.sidecar) if removed is None else removed
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
    return contents.find_parts(reader, writer.repository.storage_id, package_id, digests)


def _tags(reader: Reader, writer: ImageLayoutWriter, image: str, after: str) -> list[StoredTag]:
    package_id = writer.package_id(reader, image)
    return [] if package_id is None else contents.tags_after(reader, package_id, after, LINES)


def _loose(reader: Reader, writer: ImageLayoutWriter, image: str, after: str) -> list[Descriptor]:
    package_id = writer.package_id(reader, image)
    return [] if package_id is None else contents.unreferenced_after(reader, package_id, after, LINES)


def _known(writer: ImageLayoutWriter, image: str) -> _Known:
    return (writer.repository.id, writer.repository.name, image)
