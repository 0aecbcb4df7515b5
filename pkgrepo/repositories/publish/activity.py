"""Write commands that fail when their repository may not be changed any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pkgrepo.errors import ReadOnly, RepositoryInactive
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.storage.catalog.server import repositories

T = TypeVar("T")


def if_active(command: Callable[..., T]) -> Callable[..., T]:
    """
    Wrap a command so that it fails if the repository was switched off or removed during the upload.

    It then raises L{RepositoryInactive} or L{NotFound}, and L{ReadOnly} for a virtual repository, which has no content
    of its own.
    """

    def run(tx: Transaction, /, repository: Repository, *args: Any) -> T:
        if not repositories.get_repository(tx, repository.id).active:
            raise RepositoryInactive(repository.path)
        if repository.type is RepositoryType.VIRTUAL:
            raise ReadOnly(f"repository {repository.path} is virtual: packages are in its members")
        return command(tx, repository, *args)

    return run
