"""What one process keeps in memory of the documents of all channels."""

from __future__ import annotations

from attrs import Factory, frozen

from pkgrepo.repositories.publish.package_lists import PackageLists

from .documents import ChannelSource
from .packages import PackageRecords
from .stored import StoredDocument


@frozen(eq=False)
class IndexCaches:
    """The documents of hosted channels."""

    lists: PackageLists[PackageRecords, StoredDocument] = Factory(lambda: PackageLists(ChannelSource()))
