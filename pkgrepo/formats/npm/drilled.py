"""Harmless tarballs of the shape of an incident, and the packument of a registry that has them; see L{Drilled}."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pkgrepo.proxy.incidents.making import MACHINE_CODE, SCRIPT, filler, tar_gz_of
from pkgrepo.proxy.incidents.shapes import Drilled, Made, Published
from pkgrepo.repositories.clock import format_time

from .paths import tarball_path
from .semver import parse_version

PREDICATE: Final = "https://slsa.dev/provenance/v1"
PIPELINE: Final = {"name": "GitHub Actions", "email": "npm-oidc-no-reply@github.com"}  # as whom npm shows pipelines
_GYP: Final = b'{"targets": [{"target_name": "harmless", "type": "none"}]}\n'


def make(name: str, published: Published) -> Made:
    """The tarball of a version."""
    members = {"package.json": msgspec.json.encode(_manifest(name, published)), "index.js": filler(published, "//")}
    if "install_script" in published.inside:
        members["install.js"] = b"// does nothing\n"
    if "native_build" in published.inside:
        members["binding.gyp"] = _GYP
    if "executable" in published.inside:
        members["run.sh"] = SCRIPT
    if "native_binary" in published.inside:
        members["harmless.node"] = MACHINE_CODE
    content = tar_gz_of({f"package/{path}": body for path, body in members.items()})
    return Made(tarball_path(name, published.version), content)


def document(name: str, found: Mapping[str, tuple[Published, Made]], url: str) -> bytes:
    """The packument, in the full form, of a registry at an address."""
    versions = {text: _listed(name, published, made, url) for text, (published, made) in found.items()}
    stable = [text for text in versions if "-" not in text] or list(versions)
    times = {text: format_time(published.at) for text, (published, _) in found.items()}
    return msgspec.json.encode(
        {
            "_id": name,
            "name": name,
            "dist-tags": {"latest": max(stable, key=lambda text: parse_version(text).sort)} if stable else {},
            "versions": versions,
            "time": {"created": min(times.values(), default=""), "modified": max(times.values(), default=""), **times},
        }
    )


def _manifest(name: str, published: Published) -> dict[str, Any]:
    scripts = {published.script: "node install.js"} if "install_script" in published.inside else {}
    repository = published.repository or f"git+https://code.invalid/{name}.git"
    return {
        "name": name,
        "version": published.version,
        "description": "A harmless package of the shape of a published incident",
        "license": "MIT",
        "main": "index.js",
        "repository": {"type": "git", "url": repository},
        **({"scripts": scripts} if scripts else {}),
        **({"dependencies": published.needs} if published.needs else {}),
    }


def _listed(name: str, published: Published, made: Made, url: str) -> dict[str, Any]:
    """A version as the public registry lists it."""
    user: dict[str, Any] = {"name": published.publisher, "email": f"{published.publisher}@mail.invalid"}
    if published.proof == "trusted":
        user = {**PIPELINE, "trustedPublisher": {"id": "github", "oidcConfigId": f"oidc:{published.publisher}"}}
    dist: dict[str, Any] = {
        "integrity": f"sha512-{base64.b64encode(hashlib.sha512(made.content).digest()).decode()}",
        "shasum": hashlib.sha1(made.content, usedforsecurity=False).hexdigest(),
        "tarball": f"{url}/{made.path}",
    }
    if published.proof:
        dist["attestations"] = {
            "url": f"{url}/-/npm/v1/attestations/{name}@{published.version}",
            "provenance": {"predicateType": PREDICATE},
        }
    return {
        **_manifest(name, published),
        "_id": f"{name}@{published.version}",
        "_npmUser": user,
        "maintainers": [
            {"name": each, "email": f"{each}@mail.invalid"} for each in published.maintainers or [published.publisher]
        ],
        "dist": dist,
    }


DRILLED: Final = Drilled(make=make, document=document)
