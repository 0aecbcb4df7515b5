"""Why a repository does not serve a package that exists."""

from __future__ import annotations

from attrs import define

from pkgrepo.errors import NotFound, RepositoryInactive


@define
class NameReserved(NotFound):
    """No upstream is asked for the package, since its name matches ``pattern``, and no hosted repository has it."""

    pattern: str

    def __str__(self) -> str:
        return f"{NotFound.__str__(self)} here: {self.header_reason}"

    @property
    def header_reason(self) -> str:
        """The reason for the header of an answer."""
        return f"no upstream is asked for it, since policy.reserved_names has {self.pattern!r}"


@define
class NameRetired(NotFound):
    """No upstream is asked for the package, since a hosted repository had it, and its name was not released."""

    def __str__(self) -> str:
        return f"{NotFound.__str__(self)} here: {self.header_reason}"

    @property
    def header_reason(self) -> str:
        """The reason for the header of an answer."""
        return "no upstream is asked for it, since a hosted repository had it until it was removed"


@define
class MemberInactive(RepositoryInactive):
    """The members of the virtual repository at ``path`` that have the package ``name`` are switched off."""

    name: str

    def __str__(self) -> str:
        return f"the member of repository {self.path} that has package {self.name!r} is not active"
