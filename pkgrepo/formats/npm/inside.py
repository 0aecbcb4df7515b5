"""
What a tarball has inside that runs at its installation, as npm and its peers find it.

npm runs ``preinstall``, ``install`` and ``postinstall``. Where a package has a ``binding.gyp``, and none of the first
two, it runs ``node-gyp rebuild``, whatever the document of the package says. ``prepare`` runs for dependencies from git
alone.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.archives.explained import digests_of_files, names_of_tags
from pkgrepo.archives.inside import Difference, Inside, Shape, Signs, Word, look_inside, names_checked
from pkgrepo.archives.licence_texts import licence_files, licences_declared
from pkgrepo.errors import Invalid
from pkgrepo.repositories.format import Sources
from pkgrepo.repositories.policy.facts import licences_of
from pkgrepo.untrusted.code_hosts import repository_of

RUN: Final = ("preinstall", "install", "postinstall")
_BUILDERS: Final = re.compile(r"node-gyp|node-pre-gyp|prebuild|cmake-js|neon|napi|cargo|make\b")
_GYP: Final[Sequence[Word]] = ("install_script", "native_build")
_TOP: Final = r"^(?:\./)?[^/]+/"  # clients drop the first part of each path, whatever it is called
_AT: Final = rf"(?:{_TOP}|^)"  # it may be empty: "/package.json" is read by npm
_BUNDLED: Final = rf"{_AT}(?:node_modules/(?:@[^/]+/)?[^/@]+/)+"  # npm runs what packages want that come in a tarball


# Those that npm installs with a package; since npm 7 peers are, too.
_INSTALLED: Final = ("dependencies", "optionalDependencies", "peerDependencies")
# The case of a scheme does not matter (npm-package-arg).
_DIRECT: Final = re.compile(r"\s*(?:git|(?!npm:)[a-z][a-z0-9+.-]*:|[\w.-]+@|[\w.-]+/[\w.-]+(?:#|$))", re.IGNORECASE)
_ALIAS: Final = re.compile(r"\s*npm:(@?[^@\s]+)", re.IGNORECASE)


def shape_of(manifest: Mapping[str, Any]) -> Shape:
    """
    What a manifest, in a tarball or a document, says of what is compared between versions.

    :raises Invalid: it has too many dependencies
    """
    wanted = dict(_dependencies(manifest))
    aliases = {name: found[1] for name, text in wanted.items() if (found := _ALIAS.match(text)) is not None}
    source = manifest.get("repository")
    source = source.get("url") if isinstance(source, dict) else source
    repository = repository_of(source, short=True) if isinstance(source, str) else ""
    people, dist = manifest.get("maintainers"), manifest.get("dist")
    unpacked = dist.get("unpackedSize") if isinstance(dist, dict) else None
    return Shape(
        dependencies=names_checked([*wanted, *aliases.values()]),
        direct=names_checked(name for name, text in wanted.items() if _DIRECT.match(text)),
        aliases=names_checked(aliases.keys() - aliases.values()),
        sources=(repository,) if repository else (),
        publisher=_account(manifest.get("_npmUser")),
        maintainers=names_checked(filter(None, map(_account, people if isinstance(people, list) else ()))),
        unpacked=unpacked if isinstance(unpacked, int) and unpacked >= 0 else None,
        platform=bool(manifest.get("os") or manifest.get("cpu")),
    )


def _dependencies(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    optional = manifest.get("peerDependenciesMeta")
    for kind in _INSTALLED:
        found = manifest.get(kind)
        for name, text in found.items() if isinstance(found, dict) else ():
            about = optional.get(name) if kind == "peerDependencies" and isinstance(optional, dict) else None
            if not (isinstance(about, dict) and about.get("optional") is True):
                yield name, str(text)


def _account(value: object) -> str:
    """The name of an account, as documents have it: an object, or NAME <EMAIL>."""
    name = value.get("name") if isinstance(value, dict) else value
    return name.partition("<")[0].strip() if isinstance(name, str) else ""


def _read(data: bytes) -> Inside:
    """What a manifest says. :raises Invalid: it cannot be read"""
    try:
        manifest = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"package.json is not JSON: {error}") from None
    if not isinstance(manifest, dict):
        return Inside()
    scripts: Any = manifest.get("scripts")
    run = [str(scripts[each]) for each in RUN if scripts.get(each)] if isinstance(scripts, dict) else []
    words: list[Word] = ["install_script"] if run else []
    words += ["native_build"] if any(map(_BUILDERS.search, run)) else []
    licences = names_checked(licences_declared(licences_of(manifest)), "licences")
    # who published it only the registry knows
    shape = msgspec.structs.replace(shape_of(manifest), publisher="", maintainers=(), licences=licences)
    return Inside(frozenset(words), shape)


def _read_bundled(data: bytes) -> Inside:
    """What the manifest of a package in the tarball says that runs. :raises Invalid: it cannot be read"""
    return Inside(_read(data).words)


# File systems may ignore case.
SIGNS: Final = Signs(
    names=[(re.compile(rf"(?:{_AT}|{_BUNDLED})binding\.gyp$", re.IGNORECASE), each) for each in _GYP],
    texts=[
        (re.compile(rf"{_AT}package\.json$", re.IGNORECASE), _read),
        (re.compile(rf"{_BUNDLED}package\.json$", re.IGNORECASE), _read_bundled),
    ],
    top=re.compile(_TOP),
    licences=licence_files(_TOP),
)


CONTENTS: Final[frozenset[Word]] = frozenset({"install_script", "native_build", "executable", "native_binary"})
DIFFERS: Final[frozenset[Difference]] = frozenset(
    {
        *("install_script", "native_build", "executable", "dependency", "git_dependency", "publisher", "source"),
        *("young_dependency", "size", "obfuscated", "licence", "unexplained"),
    }
)


def look(content: int | bytes, path: str) -> Inside:
    """What a tarball has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    return look_inside(content, path, SIGNS)


def _tags(name: str, version: str) -> Sequence[str]:
    """The tags of a version: those of a repository with several packages have the name of one, maybe without scope."""
    scope, _, rest = name.rpartition("/")
    plain = names_of_tags(version, [name, *([rest] if scope else [])])
    return [*plain[2:], *plain[:2]] if scope else plain


SOURCES: Final = Sources(digests=lambda content, path: digests_of_files(content, path, SIGNS.top), tags=_tags)
