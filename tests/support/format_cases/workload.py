"""Publishes into repositories of every format, which a fault interrupts, and what must be there afterwards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set
from itertools import product

from attrs import frozen

from tests.support.configurations import config, hosted
from tests.support.http_client import HttpClient
from tests.support.uploader import Upload

from . import CASES
from .case import Case

REPEATED = (403, 409)  # what formats say of a version that is there


@frozen
class Release:
    """A version of a package in the repository ``main/FORMAT``."""

    case: Case
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.case.format} {self.name} {self.version}"

    @property
    def data(self) -> bytes:
        """The bytes of its file."""
        return self.case.sent(self.name, self.version)[1]

    @property
    def uploads(self) -> list[Upload]:
        """The requests that publish it."""
        return [
            Upload((str(self), path), f"/repositories/main/{self.case.format}{path}", body, REPEATED, method, kind)
            for method, path, body, kind in self.case.requests(self.name, self.version)
        ]

    def is_whole(self, main: HttpClient) -> bool:
        """
        Whether it is listed, and its file is served, by the repositories below an address.

        :raises AssertionError: there is one without the other, or the file has other bytes
        """
        client = main.below(self.case.format)
        document = client.get(self.case.document_of(self.name))
        assert document.status in (200, 404), (str(self), document)
        listed = document.status == 200 and self.case.listing(self.name, self.version) in document.body
        file = client.get(self.case.file_of(self.name, self.version))
        assert (file.status, file.body) == (200, self.data) if file.status != 404 else True, (str(self), file)
        alone = len(self.uploads) == 1  # of several files each one lists the version
        assert (listed == (file.status == 200)) if alone else (listed or file.status == 404), (str(self), listed, file)
        return listed and file.status == 200


def repositories(lines: str = "") -> str:
    """The sections of a hosted repository of every format, with these lines, such as ``PRIVATE``."""
    # Without packages made of wheels in the background, the numbers of what there is are known.
    wheels = config(conda="from_wheels = false")
    return "".join(hosted(each, **{each: f"{lines}\n{wheels if each == 'python' else ''}"}) for each in CASES)


def make_releases(count: int, names: Iterable[str] = ("demo", "left", "right")) -> list[Release]:
    """So many versions of each of some packages, in every format."""
    return [Release(case, name, f"1.{number}.0") for case, name, number in product(CASES.values(), names, range(count))]


def check_releases(server: HttpClient, releases: Iterable[Release], acknowledged: Set[Hashable]) -> set[Hashable]:
    """
    The keys of the uploads of all versions that a server has.

    :raises AssertionError: it lacks one that was acknowledged, or has one by halves
    """
    main = server.below("repositories/main")
    kept = set[Hashable]()
    for each in releases:
        keys = {upload.key for upload in each.uploads}
        if each.is_whole(main):
            kept |= keys
        else:
            assert not keys <= acknowledged, str(each)
    return kept
