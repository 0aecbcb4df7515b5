"""Chooses the writer that shows the packages of a repository in the readable layout."""

from __future__ import annotations

from typing import Any

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import IImageFormat, IPathFormat
from pkgrepo.model import Repository
from pkgrepo.repositories.context import MaintenanceContext

from .images.directory import ImageLayoutWriter
from .trees.writer import TreeLayoutWriter
from .writer import FileLayoutWriter, LayoutWriter


async def open_writer(context: MaintenanceContext, repository: Repository) -> LayoutWriter[Any] | None:
    """
    Return the writer for a repository, or None where its storage keeps no readable layout or was removed.

    :raises PkgrepoError: the storage cannot be opened
    """
    format_ = context.formats.get(repository.format)
    try:
        storage = context.registry.storage(repository.storage_id)
    except NotFound:
        return None  # storage and repository were removed a moment ago
    layout = await context.open_layout(storage)
    if format_ is None or layout is None or not storage.readable_layout:
        return None
    if IImageFormat.providedBy(format_):
        return ImageLayoutWriter(layout, repository)
    if IPathFormat.providedBy(format_):
        return TreeLayoutWriter(layout, repository, format_)
    return FileLayoutWriter(layout, repository, format_)
