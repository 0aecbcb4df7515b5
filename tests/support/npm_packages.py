"""Small npm packages: tarballs, and publish documents as each client sends them."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

from tests.support.tarballs import make_tar_gz

BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"


def make_manifest(name: str, version: str, **fields: Any) -> dict[str, Any]:
    """Return the value of a package.json."""
    return {"name": name, "version": version, "description": f"{name} for tests", "main": "index.js", **fields}


def make_tarball(
    name: str,
    version: str,
    *,
    manifest: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
    folder: str = "package",
    pad: int = 0,
) -> bytes:
    """
    Return a reproducible tarball; ``manifest`` replaces the default package.json, ``files`` are additional.

    ``pad`` is the size in bytes of an additional incompressible file.
    """
    packed = make_manifest(name, version) if manifest is None else manifest
    members = {
        "package.json": json.dumps(packed, indent=2).encode(),
        "index.js": f"module.exports = {json.dumps(f'{name}@{version}')};\n".encode(),
        **({"padding.bin": random.Random(pad).randbytes(pad)} if pad else {}),
        **(files or {}),
    }
    return make_tar_gz({f"{folder}/{path}": content for path, content in members.items()}, level=1)


def make_dist(name: str, version: str, tarball: bytes, registry: str = "http://localhost") -> dict[str, str]:
    """Return ``dist`` as clients send it; its ``tarball`` is by default an http: URL outside the registry's path."""
    return {
        "integrity": f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}",
        "shasum": hashlib.sha1(tarball).hexdigest(),
        "tarball": f"{registry}/{name}/-/{name}-{version}.tgz",
    }


def make_bundle(name: str, version: str, tarball: bytes, **statement: Any) -> str:
    """Return a provenance bundle like that of a build service, with an invalid signature."""
    subject = {
        "name": f"pkg:npm/{name.replace('@', '%40')}@{version}",
        "digest": {"sha512": hashlib.sha512(tarball).hexdigest()},
    }
    signed = {"predicateType": "https://slsa.dev/provenance/v1", "subject": [subject], **statement}
    payload = base64.b64encode(json.dumps(signed).encode()).decode()
    envelope = {"payload": payload, "payloadType": "application/vnd.in-toto+json", "signatures": [{"sig": "c2ln"}]}
    return json.dumps({"mediaType": BUNDLE_TYPE, "verificationMaterial": {}, "dsseEnvelope": envelope})


def make_publish(
    name: str,
    version: str,
    *,
    client: str = "npm",
    tag: str = "latest",
    tarball: bytes | None = None,
    bundle: str | None = None,
    access: str | None = None,
    registry: str = "http://localhost",
    **fields: Any,
) -> bytes:
    """
    Return the body of a publish request as ``npm``, ``pnpm``, ``yarn1``, ``yarn4`` or ``bun`` sends it.

    ``fields`` are additional members of the manifest; ``bundle`` is a provenance bundle, in JSON.
    """
    if tarball is None:
        tarball = make_tarball(name, version, manifest=make_manifest(name, version, **fields))
    manifest = make_manifest(name, version, **fields)
    attachments: dict[str, Any] = {
        f"{name}-{version}.tgz": {
            "content_type": "application/octet-stream",
            "data": base64.b64encode(tarball).decode(),
            "length": len(tarball),
        }
    }
    if bundle is not None:
        attachments[f"{name}-{version}.sigstore"] = {
            "content_type": BUNDLE_TYPE,
            "data": bundle,
            "length": len(bundle),
        }
    dist = make_dist(name, version, tarball, registry)
    return json.dumps(
        _LAYOUTS[client](name, version, manifest, dist, tag, access, attachments),
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def _npm(
    name: str,
    version: str,
    manifest: dict[str, Any],
    dist: dict[str, str],
    tag: str,
    access: str | None,
    attachments: dict[str, Any],
) -> dict[str, Any]:
    sent = {
        **manifest,
        "readme": f"# {name}\n",
        "readmeFilename": "README.md",
        "_id": f"{name}@{version}",
        "_nodeVersion": "22.21.0",
        "_npmVersion": "11.19.1",
        "dist": dist,
    }
    return {
        "_id": name,
        "name": name,
        "description": manifest["description"],
        "dist-tags": {tag: version},
        "versions": {version: sent},
        "access": access,
        "_attachments": attachments,
    }


def _with_junk(*args: Any) -> dict[str, Any]:
    """Return the document of pnpm and bun, which do not remove private keys from the manifest."""
    name, version, _, dist, *_ = args
    document = _npm(*args)
    document["versions"][version] |= {
        "_integrity": dist["integrity"],
        "_resolved": f"/home/somebody/{name}-{version}.tgz",
        "_from": f"file:{name}-{version}.tgz",
        "integrity": dist["integrity"],
        "shasum": dist["shasum"],
    }
    return document


def _bun(*args: Any) -> dict[str, Any]:
    document = _with_junk(*args)
    document["versions"][args[1]]["repository"] = "git+https://example.org/x.git"
    return document


def _yarn1(*args: Any) -> dict[str, Any]:
    """Return the document of yarn 1, which has only sha1 as a digest, and no ``access``."""
    document = _npm(*args)
    sent = document["versions"][args[1]]
    sent["dist"] = {key: value for key, value in sent["dist"].items() if key != "integrity"}
    return {key: value for key, value in document.items() if key != "access"}


def _yarn4(*args: Any) -> dict[str, Any]:
    """Return the document of yarn 4: attachments before the name, and the readme beside the versions."""
    document = _npm(*args)
    sent = document["versions"][args[1]]
    document["readme"] = sent.pop("readme")
    del sent["readmeFilename"]
    return {"_id": document["_id"], "_attachments": document.pop("_attachments"), **document}


_LAYOUTS = {"npm": _npm, "pnpm": _with_junk, "bun": _bun, "yarn1": _yarn1, "yarn4": _yarn4}

CLIENTS = tuple(_LAYOUTS)
