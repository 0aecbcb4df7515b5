"""
The documents in which clients of a format find the files of a repository, such as the simple index of Python.

A format says which there are (L{ClientDocuments}), with the file by which a plain web server answers in place of this
server. The server lists them beside the files of a repository for whoever copies it: a static twin is all of them, a
bundle has those that are read again, and the proof of a backup looks into those that name a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from pkgrepo.model import Version


@frozen(kw_only=True)
class Selection:
    """
    The entries of a JSON document that a bundle keeps: those of files that it has in the folder ``below``.

    ``files`` are members with an entry for each file, by its name or, where a place in the entry is given, by the
    address at that place. ``keys`` are members that have the keys of such entries, ``values`` those that name them.
    ``whole`` are the other members that are kept; None: all. ``path`` is that of the document in the bundle.
    """

    path: str
    below: str
    files: Mapping[str, Sequence[str]]
    keys: Sequence[str] = ()
    values: Sequence[str] = ()
    whole: Sequence[str] | None = None


@frozen(kw_only=True)
class ClientDocument:
    """
    A document that the server makes, which need not exist.

    ``path`` is that of the file in a copy. Clients ask for it at the ``address`` below the repository, in the form
    ``accept``; without an address at the path. ``folder`` is the address of the folder that it describes, if clients
    ask for that. One that is ``absolute`` has the addresses of files below that of the repository, in strings of JSON.

    ``named`` is what it has of a file at a path with a sha256; empty for one that it does not name.
    """

    path: str
    address: str | None = None
    accept: str = "*/*"
    folder: str = ""
    absolute: bool = False
    selection: Selection | None = None
    named: Callable[[str, str], str] = lambda _path, _sha256: ""


def _none(*_: object) -> Sequence[ClientDocument]:
    return ()


@frozen(kw_only=True, eq=False)
class ClientDocuments:
    """
    The documents of a format beside its files; by default there are none.

    ``repository`` are those about all packages, ``package`` those about one, by its key and name, ``version`` those
    about a version of a package, by its name, and ``folder`` those of each folder that has files, also at the root
    (empty). ``beside`` are the endings of documents beside each file and each document of a folder.
    """

    repository: Sequence[ClientDocument] = ()
    package: Callable[[str, str], Sequence[ClientDocument]] = _none
    version: Callable[[str, Version], Sequence[ClientDocument]] = _none
    folder: Callable[[str], Sequence[ClientDocument]] = _none
    beside: Sequence[str] = field(default=())
