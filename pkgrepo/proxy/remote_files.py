"""Files of upstreams, and whether a kept file is the one that an upstream lists now."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import frozen

from pkgrepo.model import File, Repository

from .configuration import is_from
from .parts.values import Entry, FileSource

LISTED = "listed"  # the attribute of a kept file that has the digests of the distribution it was listed with


@frozen(eq=False)
class RemoteFile:
    """
    A file that an upstream has, in the proxy that serves it.

    ``checked_ms`` is when the upstream last confirmed the document that lists it; 0 for a file that no document lists.
    """

    repository: Repository
    key: str
    route: str
    source: FileSource
    entry: Entry
    checked_ms: int = 0

    @property
    def url(self) -> str:
        """Its URL without query, which may hold a signature: that is as good as a password for a while."""
        return urlsplit(self.source.url)._replace(query="", fragment="").geturl()

    @property
    def identity(self) -> str:
        """A text that differs from that of another file which is listed at the same path later, or by another route."""
        digests = self.source.digests
        if digests:
            return " ".join(f"{algorithm}={digests[algorithm]}" for algorithm in sorted(digests))
        listed = " ".join(f"{algorithm}={digest}" for algorithm, digest in sorted(self.listed_digests.items()))
        return f"{self.route} {self.url} {listed}"

    @property
    def listed_digests(self) -> Mapping[str, str]:
        """For a file without digests, those of the distribution that it was listed with; empty if there are none."""
        if self.source.digests:
            return {}
        return next((dict(each.digests) for each in self.entry.files if each.digests), {})

    def is_kept_as(self, file: File) -> bool:
        """
        Whether a kept file is this one.

        It is if it has the digests that the upstream announces. A file without any must have come from the same route
        and URL, and a companion have been listed with the same distribution.
        """
        announced = self.source.digests
        if announced:
            known = {**file.digests, "sha256": file.sha256}
            common = announced.keys() & known.keys()
            return bool(common) and all(announced[each] == known[each] for each in common)
        origin = file.origin
        if origin is not None and (origin.route, origin.url) != (self.route, self.url):
            return False
        if self.source.size is not None and self.source.size != file.size:
            return False
        return dict(file.attrs.get(LISTED, self.listed_digests)) == self.listed_digests


def is_former(proxy: Repository, file: File) -> bool:
    """Whether a kept file came from an upstream that the proxy does not have any more."""
    origin = file.origin
    return origin is not None and not is_from(proxy, origin.route, origin.address)
