"""Lock files of npm, yarn, pnpm and bun."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import (
    Digests,
    Lock,
    Wanted,
    parse_integrity,
    path_of,
    read_json,
    table_of,
    text_of,
)
from pkgrepo.untrusted.yaml_text import read_yaml

NPM: Final = "npm"
MOST_DEPTH: Final = 100  # of the dependencies in a file of version 1
NO_REGISTRY: Final = "it does not come from a registry"

_MODULES: Final = "node_modules/"
_KEY: Final = re.compile(r"(@?[^@]+)@(.+)", re.DOTALL)
_FIELD: Final = re.compile(r"  (version|resolved|integrity) \"?([^\"]*)\"?")
_TRAILING: Final = re.compile(r",(\s*[}\]])")
_VERSION: Final = re.compile(r"\d++\.\d++\.\d++[0-9A-Za-z.+-]*+")  # which goes back nowhere: texts are long
_OLDER: Final = re.compile(r"/(@[^/@]+/[^/@]+|[^/@]+)/(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)")
_SHA1: Final = re.compile(r"[0-9a-f]{40}")


def read_package_lock(text: str) -> Lock:
    """``package-lock.json`` and ``npm-shrinkwrap.json``, versions 1 to 3. :raises Invalid: it is another file"""
    document, lock = read_json(text), Lock()
    if "packages" in document:
        for place, entry in table_of(document["packages"]).items():
            if _MODULES in place and isinstance(entry, dict):
                name = text_of(entry.get("name")) or place.rpartition(_MODULES)[2]
                if not (entry.get("link") or entry.get("inBundle")):
                    _add(lock, name, entry.get("version"), entry.get("resolved"), entry.get("integrity"))
    elif "dependencies" in document:
        for name, entry in _each_dependency(document, MOST_DEPTH):
            _add(lock, name, entry.get("version"), entry.get("resolved"), entry.get("integrity"))
    elif "lockfileVersion" not in document:
        raise Invalid("it has no packages: is it a package-lock.json?")
    return lock


def read_yarn(text: str) -> Lock:
    """``yarn.lock`` of yarn 1, and of yarn 2 and later. :raises Invalid: it is another file"""
    if re.search(r"^__metadata:", text, re.MULTILINE):
        return _read_berry(text)
    lock, fields, key = Lock(), dict[str, str](), ""
    for line in [*text.splitlines(), "end:"]:
        found = _FIELD.fullmatch(line.rstrip())
        if found is not None:
            fields.setdefault(found[1], found[2])
        elif line and line[0] not in " #":
            if key:
                _add_yarn(lock, key, fields)
            key, fields = line.rstrip().rstrip(":").split(",")[0].strip('" '), {}
    if not lock.wanted and not lock.left_out and "yarn lockfile" not in text:
        raise Invalid("it is no yarn.lock")
    return lock


def read_pnpm(text: str) -> Lock:
    """``pnpm-lock.yaml``, versions 5 to 9. :raises Invalid: it is another file"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "lockfileVersion" not in document:
        raise Invalid("it has no lockfileVersion: is it a pnpm-lock.yaml?")
    for key, entry in table_of(document.get("packages")).items():
        resolution = table_of(table_of(entry).get("resolution"))
        if "directory" in resolution:
            continue
        name, version = _split_pnpm(key or "")
        name, version = text_of(table_of(entry).get("name")) or name, text_of(table_of(entry).get("version")) or version
        tarball = text_of(resolution.get("tarball"))
        if "repo" in resolution or not version:
            lock.leave_out(key, NO_REGISTRY)
        else:
            _add(lock, name, version, tarball, resolution.get("integrity"))
    return lock


def read_bun(text: str) -> Lock:
    """``bun.lock``, which is JSON with commas at the end of lists. :raises Invalid: it is another file"""
    document, lock = read_json(_TRAILING.sub(r"\1", text)), Lock()
    for entry in table_of(document.get("packages")).values():
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
            continue
        found = _KEY.fullmatch(entry[0])
        if found is None or found[2].startswith(("workspace:", "link:", "file:", "root:")):
            continue
        _add(lock, found[1], found[2], "", entry[-1])
    return lock


def _each_dependency(node: dict[str, Any], depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The dependencies of a file of version 1, which nest as the folders do."""
    for name, entry in table_of(node.get("dependencies")).items() if depth else ():
        if isinstance(entry, dict) and not entry.get("bundled"):
            yield name, entry
            yield from _each_dependency(entry, depth - 1)


def _add(lock: Lock, name: str, version: object, resolved: object, integrity: object) -> None:
    """Add a package, unless what its lock file says of its origin is no registry."""
    text, origin = text_of(version), text_of(resolved)
    if text.startswith("npm:"):  # another package under this name
        found = _KEY.fullmatch(text.removeprefix("npm:"))
        name, text = (found[1], found[2]) if found is not None else (name, "")
    if text.startswith(("file:", "link:")) or origin.startswith("file:"):
        return  # it is a part of the project
    if _VERSION.fullmatch(text) is None or not _is_tarball_of(origin, name, text):
        lock.leave_out(f"{name} {text or origin}", NO_REGISTRY)
        return
    digests: Digests = parse_integrity(integrity)
    fragment = origin.rpartition("#")[2]
    if not digests and _SHA1.fullmatch(fragment):
        digests = frozenset({("sha1", fragment)})
    lock.want(Wanted(format=NPM, name=name, version=text, digests=digests))


def _is_tarball_of(origin: str, name: str, version: str) -> bool:
    """Whether a URL is that of the tarball of a version in a registry, of whatever layout."""
    if not origin:
        return True
    if not origin.startswith(("http://", "https://")):
        return False
    file = path_of(origin).rpartition("/")[2]
    base = name.rpartition("/")[2]
    # Some registries serve tarballs at addresses without a name.
    return not file.endswith((".tgz", ".tar.gz")) or file.startswith(f"{base}-{version.partition('+')[0]}")


def _add_yarn(lock: Lock, key: str, fields: dict[str, str]) -> None:
    found = _KEY.fullmatch(key)
    if found is None or "version" not in fields:
        return
    name, wanted = found[1], found[2]
    if wanted.startswith(("file:", "link:", "workspace:")):
        return
    alias = _KEY.fullmatch(wanted.removeprefix("npm:")) if wanted.startswith("npm:") else None
    _add(lock, name if alias is None else alias[1], fields["version"], fields.get("resolved"), fields.get("integrity"))


def _read_berry(text: str) -> Lock:
    lock = Lock()
    for key, entry in table_of(read_yaml(text)).items():
        found = _KEY.fullmatch(text_of(table_of(entry).get("resolution")))
        if key == "__metadata" or found is None:
            continue
        protocol, _, rest = found[2].partition(":")
        if protocol in ("workspace", "link", "portal", "file", "patch"):  # what is patched has an entry of its own
            continue
        if protocol != "npm":
            lock.leave_out(found[0], NO_REGISTRY)
        else:  # its checksum is that of the archive which yarn makes of the tarball
            _add(lock, found[1], rest.partition("::")[0], "", "")
    return lock


def _split_pnpm(key: str) -> tuple[str, str]:
    """The name and the version in a key: ``/a/1.0.0_b@1``, ``/a@1.0.0(b@1)`` or ``a@1.0.0``."""
    older = _OLDER.match(key)
    if older is not None:
        return older[1], older[2]
    text = key.removeprefix("/").partition("(")[0]
    found = _KEY.fullmatch(text)
    return (found[1], found[2]) if found is not None and _VERSION.fullmatch(found[2]) else (text, "")
