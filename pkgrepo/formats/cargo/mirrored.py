"""Lock files of cargo, and where a repository has what they name."""

from __future__ import annotations

import re
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_hashes, table_of, tables_of, text_of
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, by_listing, is_version
from pkgrepo.untrusted.toml import read_toml

from .names import package_key
from .proxied import config_question

NAME: Final = "cargo"


def read_lock(text: str) -> Lock:
    """``Cargo.lock``, versions 1 to 4. :raises Invalid: it is another file"""
    document, lock = read_toml(text), Lock()
    if "package" not in document:
        raise Invalid("it has no packages: is it a Cargo.lock?")
    sums = table_of(document.get("metadata"))  # of version 1
    for each in tables_of(document["package"]):
        _add(lock, each, sums)
    return lock


def _add(lock: Lock, entry: dict[str, Any], sums: dict[str, Any]) -> None:
    name, version, source = (text_of(entry.get(key)) for key in ("name", "version", "source"))
    if not source:
        return  # it is a part of the project
    if not source.startswith(("registry+", "sparse+")):
        lock.leave_out(f"{name} {version}", "it does not come from a registry")
        return
    checksum = text_of(entry.get("checksum")) or text_of(sums.get(f"checksum {name} {version} ({source})"))
    lock.want(Wanted(format=NAME, name=name, version=version, digests=parse_hashes([f"sha256:{checksum}"])))


MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("cargo*.lock",), read_lock, frozenset({NAME})),),
    read_list=read_lock,
    text_sign=re.compile(r'^source = "(registry|sparse)\+', re.MULTILINE),
    document_keys=lambda wanted: iter([package_key(wanted.name)]),
    common=lambda _wanted: [config_question()],
    places=by_listing(lambda wanted: package_key(wanted.name)),
    package_key=lambda wanted: package_key(wanted.name),
    is_wanted=is_version,
)
