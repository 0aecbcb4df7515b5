"""The kinds of sources, by the word that people use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.importing.bundles import KIND as BUNDLE
from pkgrepo.importing.images import ImageSource
from pkgrepo.importing.items import Source, Taking
from pkgrepo.importing.sources import conda, npm, python, ruby
from pkgrepo.importing.sources.artifactory import open_artifactory
from pkgrepo.importing.sources.described import with_names
from pkgrepo.importing.sources.devpi import DevpiExport
from pkgrepo.importing.sources.gitea import open_gitea
from pkgrepo.importing.sources.image_folders import open_images
from pkgrepo.importing.sources.maven import MavenFolder, MavenSite
from pkgrepo.importing.sources.nexus import open_nexus
from pkgrepo.importing.sources.pkgrepo import open_repository
from pkgrepo.importing.sources.places import Folder, Site
from pkgrepo.importing.sources.registry import Harbor, Registry
from pkgrepo.repositories.upkeep.imports import ImportRequest

CONTAINER: Final = "docker"  # names of formats
MAVEN: Final = "maven"
FromAddress = Callable[[Site, ImportRequest], Source]
FromFolder = Callable[[Folder, ImportRequest], Source]


@frozen(kw_only=True, eq=False)
class Kind:
    """
    A kind of source. ``sources`` make one of an address or of a folder, by the format of the repository.

    None of either: such a source is no address, or no folder. ``files`` are the formats for which it is one file.
    ``about`` is the help of the command.
    ``one_repository`` is what the request has to name, of a source with several repositories.
    """

    about: str
    one_repository: str = ""
    addresses: Mapping[str, FromAddress]
    folders: Mapping[str, FromFolder]
    files: Sequence[str] = ()

    @property
    def formats(self) -> list[str]:
        """The formats of the repositories into which it can be taken."""
        return sorted({*self.addresses, *self.folders, *self.files})


def _open_harbor(site: Site, request: ImportRequest) -> Source:
    harbor = Harbor(site, request.repositories)
    return ImageSource(harbor, request.renamed, request.names, harbor.pulls)


TAKINGS: Final[Mapping[str, Taking]] = {
    "conda": conda.TAKING,
    "npm": npm.TAKING,
    "python": python.TAKING,
    "ruby": ruby.TAKING,
}

KINDS: Final[Mapping[str, Kind]] = {
    "python": Kind(
        about="Python packages: a simple index (PEP 503, PEP 691), or a folder of wheels and source distributions.",
        addresses={"python": lambda site, request: with_names(python.PythonIndex(site), request.names)},
        folders={"python": lambda folder, _: python.PythonFolder(folder)},
    ),
    "npm": Kind(
        about="npm packages: a registry, or a folder with the tarballs of each package.",
        addresses={"npm": lambda site, request: with_names(npm.NpmRegistry(site), request.names)},
        folders={"npm": lambda folder, _: npm.NpmFolder(folder)},
    ),
    "verdaccio": Kind(
        about="The npm packages of a Verdaccio: its address, or its storage folder.",
        addresses={"npm": lambda site, request: with_names(npm.NpmRegistry(site), request.names)},
        folders={"npm": lambda folder, _: npm.NpmFolder(folder)},
    ),
    "container": Kind(
        about="Container images: a registry, OCI layouts (zot, skopeo), or the storage folder of CNCF distribution.",
        addresses={CONTAINER: lambda site, request: ImageSource(Registry(site), request.renamed, request.names)},
        folders={CONTAINER: lambda folder, request: ImageSource(open_images(folder), request.renamed, request.names)},
    ),
    "maven": Kind(
        about="Maven artifacts: a repository with listings, or a folder with the layout of one.",
        addresses={MAVEN: lambda site, request: MavenSite(site, request.names)},
        folders={MAVEN: lambda folder, request: MavenFolder(folder, follow_links=request.follow_links)},
    ),
    "ruby": Kind(
        about="Ruby gems: a gem server (compact or legacy index), or a folder of gems (geminabox, gemstash).",
        addresses={"ruby": lambda site, request: with_names(ruby.GemServer(site), request.names)},
        folders={"ruby": lambda folder, _: ruby.GemFolder(folder)},
    ),
    "conda": Kind(
        about="Conda packages: a channel, by its address or its folder.",
        addresses={"conda": lambda site, _: conda.Channel(site)},
        folders={"conda": lambda folder, _: conda.ChannelFolder(folder)},
    ),
    "nexus": Kind(
        one_repository="the repository of Nexus",
        about="A repository (--repository) of Nexus 3; its images are at the address of their connector: container.",
        addresses={each: partial(open_nexus, each) for each in ("maven", "npm", "python", "ruby")},
        folders={},
    ),
    "artifactory": Kind(
        one_repository="the repository of Artifactory",
        about="A repository (--repository) of Artifactory.",
        addresses={
            each: partial(open_artifactory, each) for each in ("conda", CONTAINER, "maven", "npm", "python", "ruby")
        },
        folders={},
    ),
    "gitea": Kind(
        one_repository="the owner of the packages",
        about="The packages of an owner (--repository) in Gitea or Forgejo.",
        addresses={each: partial(open_gitea, each) for each in (CONTAINER, "maven", "npm", "python", "ruby")},
        folders={},
    ),
    "harbor": Kind(
        about="The images of Harbor; of some projects with --repository.",
        addresses={CONTAINER: _open_harbor},
        folders={},
    ),
    "pkgrepo": Kind(
        about="A repository of another pkgrepo, by its address: https://host/repositories/STORAGE/REPOSITORY.",
        addresses={
            each: partial(open_repository, each) for each in ("conda", CONTAINER, "maven", "npm", "python", "ruby")
        },
        folders={},
    ),
    BUNDLE: Kind(
        about="An air-gap bundle that another pkgrepo has written.",
        addresses={},
        folders={},
        files=("conda", CONTAINER, "maven", "npm", "python", "ruby"),
    ),
    "devpi": Kind(
        about="An index of devpi: the address of its simple index, or a folder that devpi-export wrote.",
        addresses={"python": lambda site, request: with_names(python.PythonIndex(site), request.names)},
        folders={"python": lambda folder, request: DevpiExport(folder, request.repositories)},
    ),
}


def find_kind(name: str, format_name: str) -> Kind:
    """The kind with a name, for a repository of a format. :raises Invalid: there is none, or not for that format"""
    kind = KINDS.get(name)
    if kind is None:
        raise Invalid(f"there is no kind of source {name[:50]!r}; there are {', '.join(sorted(KINDS))}", "/kind")
    if format_name not in kind.formats:
        raise Invalid(
            f"a source of kind {name} is taken into repositories of {' or '.join(kind.formats)}, not {format_name}",
            "/kind",
        )
    return kind
