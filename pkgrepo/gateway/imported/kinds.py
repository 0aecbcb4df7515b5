"""What a format says of imports: its sources, and how their packages are taken in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from attrs import frozen

from pkgrepo.gateway.imported.engine import Order, TakePackage, Tools
from pkgrepo.gateway.imported.files import FileTaker
from pkgrepo.gateway.imported.items import Fact, Source, Taking
from pkgrepo.gateway.imported.places import Folder, Site
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.upkeep.imports import ImportRequest

FromAddress = Callable[[Site, ImportRequest], Source]
FromFolder = Callable[[Folder, ImportRequest], Source]
Paths = Callable[[], AsyncIterator[tuple[str, Fact]]]  # of files, below an address, and what is known of each


class MakeTaker(Protocol):
    """Makes what takes in the packages of a source."""

    def __call__(self, tools: Tools, order: Order, source: Source, format_: StoredFormat, /) -> TakePackage:
        """``source`` is one that the format has made."""


@frozen(kw_only=True, eq=False)
class Imported:
    """
    How packages of a format are taken in.

    ``kind`` is the word for sources that speak the protocol of its clients, ``about`` the help of the command. They are
    made of an ``address`` or of a ``folder``; what an air-gap bundle has is such a folder, or one ``in_bundle``.

    Other servers are asked by their own API, too. ``assets`` makes a source of the paths that it lists, where these
    tell everything; ``package_of`` is the package of such a path, empty if it tells none. A source that is not
    ``listed`` has no list of its packages. ``normal`` is one spelling of names that have several.
    ``named`` are package and version that a name of the source stands for, None for nothing; it is only there if names
    are not those of packages. Documents with ``states`` have yanks and deprecations.
    """

    kind: str
    about: str
    address: FromAddress
    folder: FromFolder
    taker: MakeTaker
    in_bundle: FromFolder | None = None
    assets: Callable[[Site, Paths], Source] | None = None
    package_of: Callable[[str], str] = lambda _path: ""
    listed: bool = True
    normal: Callable[[str], str] = str
    named: Callable[[str], tuple[str, str] | None] | None = None
    states: bool = False


def take_files(taking: Taking) -> MakeTaker:
    """Takes in packages that consist of files."""

    def make(tools: Tools, order: Order, _source: Source, format_: StoredFormat, /) -> TakePackage:
        return FileTaker(tools=tools, order=order, taking=taking, indexer=format_.index)

    return make
