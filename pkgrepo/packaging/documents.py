"""
Documents about what was built: bills of materials (CycloneDX), and where everything comes from (in-toto, SLSA).

The description of the API (OpenAPI) is among them, for those who generate clients without a server.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from pkgrepo.management.api.openapi import describe
from pkgrepo.management.app import EVERY_TABLE
from pkgrepo.packaging.archives import sha256_of
from pkgrepo.packaging.image import DebianPackage
from pkgrepo.packaging.sources import ReleaseFailed, Sources
from pkgrepo.packaging.tree import SUITE, Locked

_NAMESPACE = uuid.UUID("6f1f3b0e-7f0c-5d8b-9a2e-0d4c8a6b1e57")  # of the serial numbers of our bills
_BUILD_TYPE = "urn:pkgrepo:bin-release:1"


def python_components(found: Iterable[Locked]) -> list[Component]:
    """The dependencies as components."""
    return [
        Component(
            type=ComponentType.LIBRARY,
            name=each.name,
            version=each.version,
            bom_ref=f"pypi:{each.name}",
            purl=PackageURL("pypi", None, each.name, each.version),
        )
        for each in found
    ]


def debian_components(found: Iterable[DebianPackage]) -> list[Component]:
    """Debian's packages as components."""
    return [
        Component(
            type=ComponentType.LIBRARY,
            name=each.name,
            version=each.version,
            bom_ref=f"deb:{each.name}:{each.architecture}",
            purl=PackageURL("deb", "debian", each.name, each.version, {"arch": each.architecture, "distro": SUITE}),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each.sha256)],
        )
        for each in found
    ]


def image_component(sources: Sources, image: Path | None) -> Component:
    """The image as a component of the chart; with the digest of its archive, unless that was skipped."""
    return Component(
        type=ComponentType.CONTAINER,
        name="pkgrepo",
        version=sources.version,
        bom_ref="image:pkgrepo",
        description="the container image that the chart runs",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256_of(image))] if image else [],
    )


def file_components(files: Mapping[str, bytes]) -> list[Component]:
    """Files in an archive as components, by their names."""
    return [
        Component(
            type=ComponentType.FILE,
            name=name,
            bom_ref=f"file:{name}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(data).hexdigest())],
        )
        for name, data in sorted(files.items())
    ]


def write_openapi(sources: Sources, out: Path) -> Path:
    """Write the description of the management API, as a server gives it at /api/openapi.json. Returns its path."""
    document = describe((table, route) for table in EVERY_TABLE for route in table.routes)
    target = out / f"pkgrepo-{sources.version}.openapi.json"
    target.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return target


def write_bom(sources: Sources, subject: Path, kind: str, components: Sequence[Component]) -> Path:
    """
    Write the bill of materials of an artifact beside it, as NAME.cdx.json, and validate it.

    :raises ReleaseFailed: it is not valid
    """
    digest = sha256_of(subject)
    root = Component(
        type=ComponentType(kind),
        name="pkgrepo",
        version=sources.version,
        bom_ref=f"pkgrepo:{subject.name}",
        description=subject.name,
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )
    bom = Bom(serial_number=uuid.uuid5(_NAMESPACE, digest), components=components)
    bom.metadata.timestamp = datetime.fromtimestamp(sources.epoch, UTC)
    bom.metadata.component = root
    bom.register_dependency(root, components)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseFailed(f"the bill of materials of {subject.name} is not valid: {problem}")
    target = subject.with_name(f"{subject.name}.cdx.json")
    target.write_text(f"{text}\n", "utf-8")
    return target


def write_provenance(
    sources: Sources, subjects: Iterable[Path], found: Iterable[Locked], debian: Iterable[DebianPackage], out: Path
) -> Path:
    """Write an in-toto statement (v1) with provenance of SLSA (v1): digests of the artifacts, and their materials."""
    materials: list[dict[str, Any]] = [{"uri": "git+pkgrepo", "digest": {"gitCommit": sources.commit}}]
    materials += [
        {"uri": f"pkg:pypi/{each.name}@{each.version}", "annotations": {"sha256": list(each.hashes)}} for each in found
    ]
    for package in debian:
        purl = PackageURL("deb", "debian", package.name, package.version, {"arch": package.architecture})
        materials.append({"uri": purl.to_string(), "digest": {"sha256": package.sha256}})
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": each.name, "digest": {"sha256": sha256_of(each)}} for each in sorted(subjects)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"commit": sources.commit, "SOURCE_DATE_EPOCH": sources.epoch},
                "resolvedDependencies": materials,
            },
            "runDetails": {"builder": {"id": f"{_BUILD_TYPE}:local"}},
        },
    }
    target = out / f"pkgrepo-{sources.version}.intoto.json"
    target.write_text(json.dumps(statement, indent=1, sort_keys=True) + "\n", "utf-8")
    return target
