"""The Go format."""

from __future__ import annotations

from tests.support.go_modules import h1_of_zip, make_module

from .case import Case

KEY = "example.com/Acme/{name}"
PLACE = "/example.com/!acme/{name}/@v/"
ZIP = f"{PLACE}{{version}}.zip"


def spelled(version: str) -> str:
    return f"v{version.removeprefix('v')}"


def module(name: str, version: str) -> bytes:
    return make_module(KEY.format(name=name), spelled(version))


GO = Case(
    format="go",
    key=KEY,
    binding=KEY,
    versions=("v1.0.0", "v1.1.0"),
    spelled=spelled,
    put=lambda send, name, version: send("PUT", ZIP.format(name=name, version=spelled(version)), module(name, version)),
    document=f"{PLACE}list",
    listed="{version}\n",
    file=ZIP,
    beside=(
        "/example.com/%21acme/demo/@v/v1.1.0.zip",
        *(f"/example.com/!acme/demo/@v/v1.1.0.{kind}" for kind in ("mod", "info")),
    ),
    sent=lambda name, version: ("module.zip", module(name, version), {}),
    lock=lambda name, version, data: ("go.sum", f"{KEY.format(name=name)} {spelled(version)} {h1_of_zip(data)}\n"),
)
