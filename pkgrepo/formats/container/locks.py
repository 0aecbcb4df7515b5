"""Lists of images."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.gateway.mirrored.locks import Lock, Wanted

NAME: Final = "docker"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


def read_images(text: str) -> Lock:
    """References of images, one a line; platforms such as ``linux/amd64,linux/arm64`` may follow a blank."""
    lock = Lock()
    for line in text.splitlines():
        reference, _, rest = line.partition("#")[0].strip().partition(" ")
        if not reference:
            continue
        name, at, digest = reference.partition("@")
        place, slash, last = name.rpartition("/")
        last, colon, tag = last.partition(":")
        host, _, below = (place + slash + last).partition("/")
        elsewhere = host == "localhost" or "." in host or ":" in host
        name = below if below and elsewhere else place + slash + last
        if (at and not _DIGEST.fullmatch(digest)) or (colon and not tag):
            lock.leave_out(reference, "it is no reference of an image")
            continue
        platforms = tuple(each for each in re.split(r"[,\s]+", rest.strip()) if each)
        for version in [each for each in (tag, digest) if each] or ["latest"]:
            lock.want(Wanted(format=NAME, name=name, version=version, platforms=platforms))
    return lock
