"""
What a distribution has inside that runs before anybody calls it.

=====================================  ============================================================================
in a wheel                             what it does
=====================================  ============================================================================
``*.pth``, ``sitecustomize``,          runs whenever Python starts, where it is put into ``site-packages`` (module
``usercustomize``                      ``site`` of the standard library)
``*.data/scripts/``                    programs that are put beside Python, and may have the name of another one
=====================================  ============================================================================

A source distribution is built by code of its own (PEP 517), or of its ``setup.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from email.parser import BytesHeaderParser
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.archives.explained import digests_of_files, names_of_tags
from pkgrepo.archives.inside import Difference, Inside, Shape, Signs, Word, look_inside, names_checked
from pkgrepo.archives.licence_texts import licence_files, licences_declared
from pkgrepo.formats.python.names import normalise
from pkgrepo.repositories.format import Sources
from pkgrepo.untrusted.code_hosts import repository_of

_WHEEL: Final = r"^(?:[^/]+\.data/(?:purelib|platlib)/)?"  # PEP 427: what goes into site-packages
_SITE: Final = r"(?:[^/]+\.pth$|(?:site|user)customize(?:\.[^/]+$|/))"

_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA: Final = re.compile(r";.*\bextra\b")
_TEXT: Final = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_OF_EXTRA: Final = re.compile(r"\bextra\s*==\s*T\b|\bT\s*==\s*extra\b")
_GROUP: Final = re.compile(r"\(([^()]*)\)")
_DIRECT: Final = re.compile(r"[^;]*@")  # PEP 508: NAME @ ADDRESS
# The labels of PEP 753 for the source, and others that are common.
_SOURCE: Final = frozenset({"source", "sourcecode", "repository", "github", "gitlab", "code", "sources"})
_LABEL: Final = re.compile(r"[^a-z0-9]+")
_END: Final = re.compile(rb"\r?\n\r?\n")
_UNSAID: Final = frozenset({"", "UNKNOWN"})  # as builders write that no licence is declared
LONGEST_HEAD: Final = 1024 * 1024  # bytes
LONGEST_MARKER: Final = 2000  # characters of a requirement; usual ones have 100


def shape_of(meta: Mapping[str, Any]) -> Shape:
    """What metadata, by the names that the catalog has, say of what is compared between versions."""
    required = [each for each in map(str, meta.get("requires_dist", ())) if not _is_optional(each)]
    addresses = [address for label, address in _links(meta) if label in _SOURCE]
    return Shape(
        dependencies=names_checked(_names(required)),
        direct=names_checked(_names(each for each in required if _DIRECT.match(each))),
        sources=tuple(sorted({*filter(None, map(repository_of, addresses))})),
    )


def _is_optional(requirement: str) -> bool:
    """
    Whether something is required for extras alone, whatever the system is (PEP 508).

    A marker that is not understood says nothing: then it is required.
    """
    if len(requirement) > LONGEST_MARKER or not _EXTRA.search(requirement):
        return False
    marker = requirement.partition(";")[2]
    marker = _OF_EXTRA.sub("0", _TEXT.sub(lambda found: "T" if found[1] or found[2] else "E", marker))
    while (found := _GROUP.search(marker)) is not None:
        marker = f"{marker[: found.start()]} {_holds(found[1]):d} {marker[found.end() :]}"
    return not _holds(marker)


def _holds(marker: str) -> bool:
    """Whether a marker without brackets can be met where no extra is asked for; 0 is what cannot."""
    alternatives = (re.split(r"\band\b", each) for each in re.split(r"\bor\b", marker))
    return any(all(clause.strip() != "0" for clause in each) for each in alternatives)


def _names(required: Sequence[str] | Iterator[str]) -> Iterator[str]:
    return (normalise(found[1]) for each in required if (found := _NAME.match(each)) is not None)


def _links(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in meta.get("project_urls", ()):
        label, _, address = str(each).partition(",")
        yield _LABEL.sub("", label.lower()), address


def _read(data: bytes) -> Inside:
    """What METADATA or PKG-INFO say, as much as pip reads of them."""
    end = _END.search(data)
    head = BytesHeaderParser().parsebytes(data[: LONGEST_HEAD if end is None else min(end.start(), LONGEST_HEAD)])
    fields = {"requires_dist": "Requires-Dist", "project_urls": "Project-URL"}
    shape = shape_of({key: [str(each) for each in head.get_all(name, ())] for key, name in fields.items()})
    said = [str(each) for name in ("License-Expression", "License") for each in head.get_all(name, ())]
    licences = names_checked(licences_declared(each for each in said if each not in _UNSAID), "licences")
    return Inside(shape=msgspec.structs.replace(shape, licences=licences))


WHEEL: Final = Signs(
    names=[
        (re.compile(f"{_WHEEL}{_SITE}", re.IGNORECASE), "pth"),
        (re.compile(rf"^[^/]+\.data/data/(?:.*/)?{_SITE}", re.IGNORECASE), "pth"),
        (re.compile(r"^[^/]+\.data/scripts/."), "executable"),
    ],
    texts=[(re.compile(r"^[^/]+\.(?:dist|egg)-info/METADATA$"), _read)],
    top=re.compile(
        r"^[^/]+\.data/(?:purelib|platlib)/|^[^/]+(?=\.data/)"
    ),  # the names of such folders have the version
    licences=licence_files(r"^[^/]+\.(?:dist|egg)-info/(?:licen[sc]es?/)?"),
)
SOURCES: Final = Signs(
    names=[
        (re.compile(r"\.pth$", re.IGNORECASE), "pth"),
        (re.compile(r"\.(?:c|cc|cpp|cxx|pyx|f|f90|rs|cu|m|mm|go)$", re.IGNORECASE), "native_build"),
    ],
    texts=[(re.compile(r"^[^/]+/PKG-INFO$"), _read)],
    top=re.compile(r"^[^/]+/"),
    licences=licence_files(r"^[^/]+/"),
)
_BUILT: Final = (".whl", ".egg")
# What builders write about a distribution; the names of these folders have the version.
_WRITTEN: Final = re.compile(r"^(?:[^/]+\.dist-info/|(?:.*/)?[^/]+\.egg-info/|PKG-INFO$)")


CONTENTS: Final[frozenset[Word]] = frozenset({"install_script", "native_build", "pth", "executable", "native_binary"})
DIFFERS: Final[frozenset[Difference]] = frozenset(
    {
        *("install_script", "native_build", "pth", "executable", "dependency", "git_dependency", "source", "size"),
        *("young_dependency", "obfuscated", "licence", "unexplained"),
    }
)


def look(content: int | bytes, path: str) -> Inside:
    """What a distribution has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    if path.lower().endswith(_BUILT):
        return look_inside(content, path, WHEEL)
    found = look_inside(content, path, SOURCES)
    return evolve(found, words=found.words | {"install_script"})


def _digests(content: int | bytes, path: str) -> Mapping[str, bytes]:
    signs = WHEEL if path.lower().endswith(_BUILT) else SOURCES
    return digests_of_files(content, path, signs.top, _WRITTEN)


OF_SOURCE: Final = Sources(digests=_digests, tags=lambda name, version: names_of_tags(version, [name]))
