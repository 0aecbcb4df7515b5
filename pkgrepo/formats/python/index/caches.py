"""What one process keeps in memory of the indexes of all Python repositories."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.gateway.spliced_documents import SplicedDocuments

from .merged_lists import MergedLists
from .project_lists import ProjectLists


@frozen(eq=False)
class IndexCaches:
    """The pages of projects, the project lists of hosted repositories, and those of the others."""

    pages: SplicedDocuments
    lists: ProjectLists
    merged_lists: MergedLists
