"""
What a gem has inside that runs at its installation, or whenever somebody calls gem.

Extensions are built when a gem is installed, by code of the gem. A file ``rubygems_plugin``, with whatever ending, in a
folder of code is loaded by every call of ``gem`` from then on, that installation included.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from attrs import evolve

from pkgrepo.archives.inside import Difference, Inside, Signs, Word, look_inside, names_checked
from pkgrepo.archives.licence_texts import licences_declared
from pkgrepo.untrusted.code_hosts import repository_of

from .push.gem_metadata import inspect_gem

SIGNS: Final = Signs(names=[(re.compile(r"(?:^|/)rubygems_plugin(?:\.[^/]+)?$", re.IGNORECASE), "install_script")])


CONTENTS: Final[frozenset[Word]] = frozenset({"install_script", "native_build", "executable", "native_binary"})
DIFFERS: Final[frozenset[Difference]] = frozenset(
    {"install_script", "native_build", "executable", "dependency", "source", "size", "obfuscated", "licence"}
)


def look(content: int | bytes, path: str) -> Inside:
    """What a gem has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    found = look_inside(content, path, SIGNS)
    spec = inspect_gem(content)
    needed = names_checked(each.name for each in spec.dependencies if each.is_runtime)
    source = repository_of(spec.metadata.get("source_code_uri", "")) or repository_of(spec.homepage or "")
    said = names_checked([*licences_declared(spec.licenses), *(found.shape.licences or ())], "licences")
    sources = (source,) if source else ()
    shape = msgspec.structs.replace(found.shape, dependencies=needed, sources=sources, licences=said)
    builds: set[Word] = {"install_script", "native_build"} if spec.extensions else set()
    return evolve(found, words=found.words | builds, shape=shape)
