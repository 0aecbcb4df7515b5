"""The Cargo format."""

from __future__ import annotations

from tests.support.crates import make_crate, make_publish

from .case import OCTETS, Case, sha256


def _lock(name: str, version: str, data: bytes) -> tuple[str, str]:
    source = "registry+https://index.example/"
    return (
        "Cargo.lock",
        "version = 4\n\n[[package]]\n"
        f'name = "{name}"\nversion = "{version}"\nsource = "{source}"\nchecksum = "{sha256(data)}"\n',
    )


CARGO = Case(
    format="cargo",
    put=lambda send, name, version: send("PUT", "/api/v1/crates/new", make_publish(name, version), kind=OCTETS),
    document="/index/{name[0]}{name[1]}/{name[2]}{name[3]}/{name}",  # of a name of more than three letters
    listed='"vers":"{version}"',
    file="/{name}/{version}/{name}-{version}.crate",
    beside=("/api/v1/crates/demo/1.1.0/download", "/api/v1/crates/Demo/1.1.0/download"),
    upstream="/index/",
    sent=lambda name, version: (f"{name}-{version}.crate", make_crate(name, version), {}),
    lock=_lock,
)
