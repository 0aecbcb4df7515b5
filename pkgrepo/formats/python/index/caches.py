"""What one process keeps in memory of the indexes of all Python repositories."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.model import Document
from pkgrepo.repositories.publish.package_lists import PackageLists

from .merged_lists import MergedLists
from .project_lists import Project


@frozen(eq=False)
class IndexCaches:
    """The pages of projects, the project lists of hosted repositories, and those of the others."""

    pages: SplicedDocuments
    lists: PackageLists[Project, Document]
    merged_lists: MergedLists
