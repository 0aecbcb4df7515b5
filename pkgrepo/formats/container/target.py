"""The image that a request addresses."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.model import Repository


@frozen
class Target:
    """
    An image, its ``name`` in the request below ``base``, and the name in the ``scope`` of tokens.

    ``base`` is ``/v2``, or the address of the repository followed by it.
    """

    repository: Repository
    image: str
    name: str
    base: str
    scope: str

    @property
    def alone(self) -> bool | None:
        """Whether the client named the image without its repository; None if the address does not tell."""
        return self.name == self.image if self.base == "/v2" else None

    def url(self, rest: str) -> bytes:
        """A URL below the image, without scheme and host, which a proxy may change; every client resolves it."""
        return f"{self.base}/{self.name}/{rest}".encode("ascii")
