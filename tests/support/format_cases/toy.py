"""The toy format of the tests."""

from __future__ import annotations

from .case import OCTETS, Case, sha256


def content(version: str) -> bytes:
    return b"toy " + version.encode()


TOY = Case(
    format="toy",
    put=lambda send, name, version: send("PUT", f"/{name}/{version}/{name}.txt", content(version), kind=OCTETS),
    document="/{name}/index.json",
    listed='"{version}"',
    file="/{name}/{version}/{name}.txt",
    beside=("/%64emo/1.1.0/demo.txt",),
    sent=lambda name, version: (f"{name}.txt", content(version), {"path": f"{name}/{version}/"}),
    lock=lambda name, version, data: ("toy.lock", f"{name}=={version} sha256:{sha256(data)}\n"),
)
