"""
The known vulnerabilities of a version, by its name or by what it names.

===========================  =======================================================================================
version                      what is compared
===========================  =======================================================================================
of npm, Python, Maven, Ruby  its own name and version
conda package                package URLs in its metadata; a package made of a wheel is compared as its project
image                        components of bills of materials about it, and package URLs in labels; without any of
                             these nothing is known of it
===========================  =======================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages import images
from pkgrepo.management.packages.contents import ComponentRecord, PlatformRecord
from pkgrepo.model import Package
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.storage.catalog.images.summaries import list_referrers
from pkgrepo.storage.catalog.packages.files import files_of_version

from .advisories import (
    MOST,
    Advisories,
    AdvisoryRecord,
    ecosystem_of,
    knowledge_of,
    known_of_components,
    known_of_package,
)
from .image_contents import MOST_REFERRERS, Budget, evidence_listed, show_image
from .statements import read_statements

MOST_DOCUMENTS: Final = 16  # manifests about an image that are read
PURL: Final = "pkg:"

table = Table("packages")


@table.get(
    "/package/<repository>/<package>/versions/<version>/advisories",
    CONTENT_READERS,
    "Show the known vulnerabilities of a version",
)
async def list_advisories(call: Call, version: str) -> Advisories:
    """
    From the export of the OSV database that the server was given, the worst first; each vulnerability once.

    An image is compared by its bills of materials (SBOM), a conda package by the package URLs that it names. checked is
    false if there are no data for this format, only old ones, or not all of what it is made of was compared: then
    "none" means nothing.
    """
    if images.are_in(call):
        return await _of_image(call, version)
    package, found = await call.find_version(version)
    purls = call.services.formats[call.repository.format].purls
    if purls is not None and not ecosystem_of(call, call.repository):
        stored = await call.catalog.scan(files_of_version, found.id)
        named = purls(found.meta, [each.attrs for each in stored])
        components = [_component(each, found.text) for each in named]
        lacking = "" if components else "this package names no package URL that could be compared"
        return await _of_components(call, components, lacking)
    state, known = await knowledge_of(call, call.repository), await known_of_package(call, package.key)
    if known is None:
        return Advisories(items=[], total=0, checked=False, problem=state.problem)
    worst = known.affecting(found.sort)
    items = [AdvisoryRecord.of(each) for each in worst[:MOST]]
    return Advisories(items=items, total=len(worst), checked=known.complete, problem=state.problem)


async def _of_image(call: Call, version: str) -> Advisories:
    package = await call.find_package()
    shown = await show_image(call, version)
    platforms = [each.digest for each in shown.platforms]
    about: dict[str, str] = {}  # manifests with statements, and the manifest that each is about
    for digest in (shown.digest, *platforms):
        found = await call.catalog.scan(list_referrers, package.id, digest, MOST_REFERRERS)
        about |= {each.digest: digest for each in found if each.digest not in about}
    about |= await evidence_listed(call, package.id, shown.digest)
    components, covered = await _read(call, package, about)
    components += [_component(each, "") for each in _labelled(shown.platforms)]
    missing = [] if shown.digest in covered else [each for each in platforms if each not in covered]
    lacking = ""
    if not components:
        lacking = "there is no bill of materials (SBOM) about this image that names components"
    elif missing:
        lacking = f"{len(missing)} of {len(platforms)} platforms have no bill of materials (SBOM) that was read whole"
    elif shown.platform_count > len(platforms) or len(about) > MOST_DOCUMENTS:
        lacking = "not all documents about this image were read"
    return await _of_components(call, components, lacking)


async def _read(call: Call, package: Package, about: dict[str, str]) -> tuple[list[ComponentRecord], set[str]]:
    """The components that documents about an image name, and the manifests that one names components of."""
    components: dict[tuple[str, str, str], ComponentRecord] = {}
    covered: set[str] = set()
    budget = Budget()
    for digest in list(about)[:MOST_DOCUMENTS]:
        for document in await read_statements(call, package.id, digest, budget):
            components |= {(each.purl, each.name, each.version): each for each in document.components}
            if document.components and document.count == len(document.components):
                covered.add(about[digest])
    return list(components.values()), covered


def _labelled(platforms: Iterable[PlatformRecord]) -> list[str]:
    """The package URLs in labels of an image."""
    found = (text for each in platforms for text in each.labels.values() if text.startswith(PURL))
    return list(dict.fromkeys(found))


def _component(purl: str, version: str) -> ComponentRecord:
    return ComponentRecord(name=purl, version=version, license="", kind="", purl=purl)


async def _of_components(call: Call, components: Sequence[ComponentRecord], lacking: str) -> Advisories:
    """What affects some components; ``lacking`` says why they are not all of the version, empty if they are."""
    affecting: dict[str, tuple[Advisory, list[str]]] = {}
    unchecked, incomplete = 0, False
    for each, found in zip(components, await known_of_components(call, components), strict=True):
        if found is None:
            unchecked += 1
            continue
        worst, complete = found
        incomplete = incomplete or not complete
        for advisory in worst:
            named = affecting.setdefault(advisory.id, (advisory, []))[1]
            named.append(each.purl or f"{each.name} {each.version}".strip())
    state = await call.shared.advisories.knowledge()
    problems = [lacking, state.problem if incomplete or not state.loaded else ""]
    if unchecked and state.loaded:
        problems.append(
            f"{unchecked} of {len(components)} components were not compared: they have no package URL of a kind that "
            "the advisories are about"
        )
    problem = "; ".join(filter(None, problems))
    ranked = sorted(affecting.values(), key=lambda each: (-SEVERITIES.index(each[0].severity), each[0].id))
    return Advisories(
        items=[AdvisoryRecord.of(*each) for each in ranked[:MOST]],
        total=len(ranked),
        checked=not problem,
        problem=problem,
    )
