"""The raw format."""

from __future__ import annotations

from .case import OCTETS, Case, sha256


def content(version: str) -> bytes:
    return b"raw " + version.encode()


RAW = Case(
    format="raw",
    put=lambda send, name, version: send(
        "PUT", f"/{name}/{version}/{name}-{version}.bin", content(version), kind=OCTETS
    ),
    document="/{name}/",
    listed='"{version}/"',
    file="/{name}/{version}/{name}-{version}.bin",
    beside=("/%64emo/1.1.0/demo-1.1.0.bin", "/demo/1.1.0/demo-1.1.0.bin.sha256", "/demo/1.1.0/demo-1.1.0.bin.md5"),
    is_folder=True,
    sent=lambda name, version: (f"{name}-{version}.bin", content(version), {"path": f"{name}/{version}/"}),
    lock=lambda name, version, data: ("files.sha256", f"{sha256(data)}  {name}/{version}/{name}-{version}.bin\n"),
)
