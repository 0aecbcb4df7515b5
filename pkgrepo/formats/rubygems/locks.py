"""Lock files of Bundler."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_hashes

NAME: Final = "ruby"
_GEM: Final = re.compile(r"    ([^\s(]+) \(([^)]+)\)")
_CHECKSUM: Final = re.compile(r"  ([^\s(]+) \(([^)]+)\) (sha256=[0-9a-f]{64})")


def read_gemfile(text: str) -> Lock:
    """``Gemfile.lock``. :raises Invalid: it is another file"""
    lock, section = Lock(), ""
    sums: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        checksum = _CHECKSUM.fullmatch(line) if section == "CHECKSUMS" else None
        if checksum is not None:
            sums[checksum[1], checksum[2]] = checksum[3]
        if line[:1].isupper():
            section = line.strip()
    if not re.search(r"^(GEM|GIT|PATH)$", text, re.MULTILINE):
        raise Invalid("it has no section GEM: is it a Gemfile.lock?")
    for line in text.splitlines():
        if line[:1].isupper():
            section = line.strip()
        found = _GEM.fullmatch(line)
        if found is None:
            continue
        name, version = found[1], found[2]
        if section in ("GIT", "PLUGIN SOURCE"):
            lock.leave_out(f"{name} {version}", "it does not come from a gem server")
        elif section == "GEM":
            digests = parse_hashes([sums.get((name, version))])
            lock.want(Wanted(format=NAME, name=name, version=version, digests=digests))
    return lock
