"""The image that a request addresses."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository


@frozen(eq=False)
class Terms:
    """
    The terms on which the answer of a member may be cached as that of the virtual ``repository`` that was addressed.

    ``unchanged`` is a query that tells whether the member is still the one that answers; it was as of the catalog's
    ``generation``. At ``ends_s`` (Unix seconds; 0 for never) another one may have it. It is not ``cacheable`` if
    another one failed.
    """

    repository: Repository
    unchanged: Callable[[Reader], bool]
    generation: int
    ends_s: int = 0
    cacheable: bool = True


@frozen
class Target:
    """
    An image, its ``name`` in the request below ``base``, and the name in the ``scope`` of tokens.

    ``base`` is ``/v2``, or the address of the repository followed by it. With ``terms`` the image is that of a member
    of the addressed repository. Of a push ``virtual`` is the addressed repository if it publishes to this one, and
    ``source`` the image out of which a blob is to be mounted, as the scopes of tokens name it; empty for none.
    """

    repository: Repository
    image: str
    name: str
    base: str
    scope: str
    terms: Terms | None = None
    virtual: Repository | None = None
    source: str = ""

    @property
    def shown(self) -> Repository:
        """The repository that the request addresses, whose visibility decides who may cache answers."""
        return self.repository if self.terms is None else self.terms.repository

    @property
    def alone(self) -> bool | None:
        """Whether the client named the image without its repository; None if the address does not tell."""
        return self.name == self.image if self.base == "/v2" else None

    def url(self, rest: str) -> bytes:
        """A URL below the image, without scheme and host, which a proxy may change; every client resolves it."""
        return f"{self.base}/{self.name}/{rest}".encode("ascii")
