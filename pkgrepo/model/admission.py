"""
The proof that something may come into sight, which the write commands that show it take.

Rules for publishing are asked in one place, L{pkgrepo.auth.permissions.admission}, which alone makes such values. So a
road that asks no rule has no value for the commands, and does not pass the type checker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from attrs import frozen

from pkgrepo.model.repositories import Repository
from pkgrepo.model.users import Actor


@frozen(kw_only=True)
class Admitted(Actor, ABC):
    """
    The actor of a change that makes something visible, and what they may make visible by it.

    That is in the repository ``authority_id``, or in what belongs to it; with ``staged`` in its stages alone.
    ``names`` are the keys of packages, and paths of plain files with a slash in front; None stands for everything.
    """

    authority_id: int
    staged: bool = False
    names: frozenset[str] | None = frozenset()

    @abstractmethod
    def by(self) -> str:
        """What admitted it: the road of the server's own work, or empty if the rules did for a caller."""

    def check(self, repository: Repository, *names: str) -> None:
        """
        Check that a command runs for what was admitted; ``names`` are as above.

        :raises AssertionError: it does not, which is a mistake of ours: nothing is written, and the request fails
        """
        authority = repository.authority
        if authority.id != self.authority_id or (self.staged and repository.stage is None):
            self._refuse(repository.path)
        for each in names:
            if self.names is not None and each not in self.names:
                self._refuse(f"{each!r} in {repository.path}")

    def _refuse(self, what: str) -> NoReturn:
        road = self.by() or "the rules for publishing"
        raise AssertionError(f"{road} did not admit {what} for {self.name or 'nobody'}: a rule was not asked")


def path_name(path: str) -> str:
    """The name of a plain file among those of L{Admitted}."""
    return f"/{path}"
