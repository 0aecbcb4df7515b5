"""
Where the files of a wheel go in a ``noarch: python`` package (PEP 427, and conda's layout for such packages).

=======================================  ====================================================================
in the wheel                             in the package
=======================================  ====================================================================
``x/y.py``, ``*.data/purelib``,          ``site-packages/...``
``*.data/platlib``
``*.data/scripts``                       ``python-scripts/...``; ``#!python`` becomes ``#!/usr/bin/env python``
``*.data/data``                          below the root of the environment
``*.data/headers``                       none: their place depends on the version of Python
compiled ``.pyc`` files                  left out: conda compiles when it installs
=======================================  ====================================================================

``INSTALLER`` says that conda installs it, and ``RECORD`` has no lines of ``*.data``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.conda.limits import ENTRY_POINTS_SIZE, MOST_ENTRY_POINTS, RECORD_SIZE, SCRIPT_SIZE
from pkgrepo.untrusted.text import quoted

SITE: Final = "site-packages"
_SCRIPTS: Final = "python-scripts"
_PLACES: Final = {"purelib": f"{SITE}/", "platlib": f"{SITE}/", "scripts": f"{_SCRIPTS}/", "data": ""}
_RESERVED: Final = frozenset({"info", "conda-meta", "pkgs", "envs", SITE, _SCRIPTS})  # conda's, below the root
_REPLACED: Final = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json"})
_GROUPS: Final = ("console_scripts", "gui_scripts")
_SHEBANG: Final = re.compile(rb"\A#!pythonw?(?=[ \r\n]|$)")
_COMMAND: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_OBJECT: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*:\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.ASCII)


@frozen
class WheelFiles:
    """An open wheel: its archive, and the names of its folders ``*.dist-info`` and ``*.data``."""

    source: Source
    archive: ZipArchive
    info: str
    data: str

    @classmethod
    def open(cls, source: Source) -> WheelFiles:
        """Open a wheel. :raises Invalid: it is damaged, or does not have one ``*.dist-info`` folder"""
        archive = ZipArchive(source)
        tops = {name.partition("/")[0] for name in archive.entries}
        infos = [top for top in tops if top.endswith(".dist-info")]
        if len(infos) != 1:
            raise source.refuse("must have exactly one .dist-info folder")
        return cls(source, archive, infos[0], infos[0].removesuffix(".dist-info") + ".data")

    def read_info(self, name: str, limit: int) -> bytes | None:
        """A file of the ``*.dist-info`` folder, or None. :raises Invalid: it is damaged, or longer than ``limit``"""
        return self.archive.read(f"{self.info}/{name}", limit)

    def places(self) -> dict[str, str]:
        """
        The members to copy, by their places in the package, sorted.

        :raises Invalid: two have the same place, or one has a place that is not for packages
        """
        found: dict[str, str] = {}
        folded: set[str] = set()
        for name, entry in self.archive.entries.items():
            place = None if entry.is_folder or name.endswith(".pyc") else self._place_of(name)
            if place is None:
                continue
            if place.casefold() in folded:
                raise self.source.refuse(f"has two files for the place {quoted(place)}")
            folded.add(place.casefold())
            found[place] = name
        return dict(sorted(found.items()))

    def replacements(self, places: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """Files that the package has in another form, by their places: scripts, RECORD and INSTALLER."""
        yield f"{SITE}/{self.info}/INSTALLER", b"conda\n"
        record = self.read_info("RECORD", RECORD_SIZE)
        if record is not None:
            lines = record.splitlines(keepends=True)
            prefixes = (self.data.encode() + b"/", b'"' + self.data.encode() + b"/")
            yield f"{SITE}/{self.info}/RECORD", b"".join(each for each in lines if not each.startswith(prefixes))
        for place, name in places.items():
            if place.startswith(f"{_SCRIPTS}/"):
                script = self.archive.read(name, SCRIPT_SIZE) or b""
                yield place, _SHEBANG.sub(b"#!/usr/bin/env python", script, count=1)

    def entry_points(self) -> list[str]:
        """
        The commands, as ``name = module:function``, sorted.

        :raises Invalid: ``entry_points.txt`` is malformed, or has a name that is none of a command
        """
        text = self.read_info("entry_points.txt", ENTRY_POINTS_SIZE)
        if not text:
            return []
        parser: Any = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # names keep their case
        try:
            parser.read_string(text.decode())
        except (ConfigError, UnicodeDecodeError):
            raise self.source.refuse("has a malformed entry_points.txt") from None
        found = {name: value for group in _GROUPS if parser.has_section(group) for name, value in parser.items(group)}
        if len(found) > MOST_ENTRY_POINTS:
            raise self.source.refuse(f"has more than {MOST_ENTRY_POINTS} commands")
        return [self._command(name, value) for name, value in sorted(found.items())]

    def _command(self, name: str, value: str) -> str:
        target = _OBJECT.fullmatch(value.partition("[")[0].strip())
        if not _COMMAND.fullmatch(name) or target is None:
            raise self.source.refuse(f"has a command {quoted(name)} that conda cannot make")
        return f"{name} = {target[1]}:{target[2]}"

    def _place_of(self, name: str) -> str | None:
        top, _, rest = name.partition("/")
        if top == self.info and rest in _REPLACED:
            return None
        if top != self.data:
            return f"{SITE}/{name}"
        kind, _, path = rest.partition("/")
        if kind not in _PLACES or not path:
            raise self.source.refuse(f"has files in {quoted(f'*.data/{kind}')}, which depend on the version of Python")
        if kind == "scripts" and ("/" in path or not path.isprintable()):
            raise self.source.refuse(f"has a script {quoted(path)} in a folder")
        if kind == "data" and path.partition("/")[0].casefold() in _RESERVED:
            raise self.source.refuse(f"has a file {quoted(path)} at a place that is conda's")
        return _PLACES[kind] + path
