"""Taking in images: from registries, and from folders of two kinds."""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.imported.engine import Order, TakePackage, Tools
from pkgrepo.gateway.imported.items import Source
from pkgrepo.gateway.imported.kinds import Imported
from pkgrepo.repositories.format import StoredFormat

from .folders import Layouts, open_images
from .images import ImageSource, ImageTaker
from .registry import Registry


def _take(tools: Tools, order: Order, source: Source, format_: StoredFormat) -> TakePackage:
    assert isinstance(source, ImageSource), "it was made here"
    assert format_.images is not None, "it is a format of images"
    return ImageTaker(tools=tools, order=order, store=source.store, images=format_.images)


IMPORTED: Final = Imported(
    kind="container",
    about="Container images: a registry, OCI layouts (zot, skopeo), or the storage folder of CNCF distribution.",
    address=lambda site, request: ImageSource(Registry(site), request.renamed, request.names),
    folder=lambda folder, request: ImageSource(open_images(folder), request.renamed, request.names),
    in_bundle=lambda folder, request: ImageSource(Layouts(folder), request.renamed, request.names),
    taker=_take,
)
