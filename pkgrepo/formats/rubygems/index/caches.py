"""What one process keeps in memory of the indexes of all Ruby repositories."""

from __future__ import annotations

from attrs import Factory, frozen

from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.model import Document
from pkgrepo.repositories.publish.package_lists import PackageLists

from .documents import make_documents
from .gem_lists import GEM_LISTS, GemRows
from .versions_list import VersionsLists


@frozen(eq=False)
class IndexCaches:
    """The documents of gems, and of hosted repositories the lists of all gems and those of all changes."""

    info: SplicedDocuments = Factory(make_documents)
    lists: PackageLists[GemRows, Document] = Factory(lambda: PackageLists(GEM_LISTS))
    versions: VersionsLists = Factory(VersionsLists)
