"""What a format says of imports: its sources, and how their packages are taken in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.engine import Order, TakePackage, Tools
from pkgrepo.gateway.imported.files import FileTaker
from pkgrepo.gateway.imported.items import Source, Taking
from pkgrepo.gateway.imported.places import Folder, Site
from pkgrepo.gateway.imported.sources import Paths, Read
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.upkeep.imports import ImportRequest

FromAddress = Callable[[Site, ImportRequest], Source]
FromFolder = Callable[[Folder, ImportRequest], Source]


def _no_package(_path: str) -> tuple[str, str]:
    raise Invalid("")


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
    tell everything; else ``read`` gives package and version of such a path, and raises ``Invalid`` if it tells no
    package; the version is empty if names of files are the same there. A source that is not ``listed`` has no list of
    its packages. ``normal`` is one spelling of names that have several.
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
    read: Read = _no_package
    listed: bool = True
    normal: Callable[[str], str] = str
    named: Callable[[str], tuple[str, str] | None] | None = None
    states: bool = False


def take_files(taking: Taking) -> MakeTaker:
    """Takes in packages that consist of files."""

    def make(tools: Tools, order: Order, _source: Source, format_: StoredFormat, /) -> TakePackage:
        return FileTaker(tools=tools, order=order, taking=taking, indexer=format_.index)

    return make
