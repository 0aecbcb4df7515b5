"""Which of the processes that serve a repository asks upstreams for something that all of them want."""

from __future__ import annotations

from typing import Protocol


class Leases(Protocol):
    """
    Leases of names: one process at a time has the lease of a name.

    The lease of a process that has died is free, at once or after a time that the implementation decides.
    """

    async def acquire(self, name: str) -> bool:
        """Take a lease. Returns False, without waiting for it, if it is taken."""

    def release(self, name: str) -> None:
        """Release a lease that was taken."""
