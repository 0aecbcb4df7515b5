"""The kinds of sources, by the word that people use: what formats read themselves, and other servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.imported.images import ImageSource
from pkgrepo.formats.container.imported.registry import Harbor
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.items import Source
from pkgrepo.gateway.imported.kinds import FromAddress, FromFolder
from pkgrepo.gateway.imported.places import Site
from pkgrepo.importing.bundles import KIND as BUNDLE
from pkgrepo.importing.servers import artifactory, gitea, nexus
from pkgrepo.importing.servers.devpi import DevpiExport
from pkgrepo.importing.servers.pkgrepo import open_repository
from pkgrepo.repositories.upkeep.imports import ImportRequest

NEXUS = "A repository (--repository) of Nexus 3; its images are at the address of their connector: container."


@frozen(kw_only=True, eq=False)
class Kind:
    """
    A kind of source. ``addresses`` and ``folders`` make one of these, by the format of the repository.

    Of a format that is in neither such a source is no address, or no folder. ``files`` are the formats for which it is
    one file. ``about`` is the help of the command. ``one_repository`` is what the request has to name, of a source with
    several repositories.
    """

    about: str
    one_repository: str = ""
    addresses: Mapping[str, FromAddress] = {}
    folders: Mapping[str, FromFolder] = {}
    files: Iterable[str] = ()

    @property
    def formats(self) -> list[str]:
        """The formats of the repositories into which it can be taken."""
        return sorted({*self.addresses, *self.folders, *self.files})


def _open_harbor(site: Site, request: ImportRequest) -> Source:
    harbor = Harbor(site, request.repositories)
    return ImageSource(harbor, request.renamed, request.names, harbor.pulls)


def make_kinds(formats: Mapping[str, Format]) -> Mapping[str, Kind]:
    """All kinds of sources for these formats, by their words."""
    own = {
        each.imported.kind: Kind(
            about=each.imported.about,
            addresses={each.name: each.imported.address},
            folders={each.name: each.imported.folder},
        )
        for each in formats.values()
    }
    npm, python = own["npm"], own["python"]

    def of(names: Iterable[str], open_: Callable[[Format, Site, ImportRequest], Source]) -> dict[str, FromAddress]:
        return {each: partial(open_, formats[each]) for each in names}

    return {
        **own,
        "verdaccio": Kind(
            about="The npm packages of a Verdaccio: its address, or its storage folder.",
            addresses=npm.addresses,
            folders=npm.folders,
        ),
        "nexus": Kind(
            one_repository="the repository of Nexus",
            about=NEXUS,
            addresses=of(nexus.FORMATS, nexus.open_nexus),
        ),
        "artifactory": Kind(
            one_repository="the repository of Artifactory",
            about="A repository (--repository) of Artifactory.",
            addresses=of(artifactory.FORMATS, artifactory.open_artifactory),
        ),
        "gitea": Kind(
            one_repository="the owner of the packages",
            about="The packages of an owner (--repository) in Gitea or Forgejo.",
            addresses=of(gitea.TYPES, gitea.open_gitea),
        ),
        "harbor": Kind(
            about="The images of Harbor; of some projects with --repository.",
            addresses={each.name: _open_harbor for each in formats.values() if each.images is not None},
        ),
        "pkgrepo": Kind(
            about="A repository of another pkgrepo, by its address: https://host/repositories/STORAGE/REPOSITORY.",
            addresses=of(formats, open_repository),
        ),
        BUNDLE: Kind(about="An air-gap bundle that another pkgrepo has written.", files=formats),
        "devpi": Kind(
            about="An index of devpi: the address of its simple index, or a folder that devpi-export wrote.",
            addresses=python.addresses,
            folders=dict.fromkeys(python.folders, lambda folder, request: DevpiExport(folder, request.repositories)),
        ),
    }


def find_kind(kinds: Mapping[str, Kind], name: str, format_name: str) -> Kind:
    """The kind with a name, for a repository of a format. :raises Invalid: there is none, or not for that format"""
    kind = kinds.get(name)
    if kind is None:
        raise Invalid(f"there is no kind of source {name[:50]!r}; there are {', '.join(sorted(kinds))}", "/kind")
    if format_name not in kind.formats:
        raise Invalid(
            f"a source of kind {name} is taken into repositories of {' or '.join(kind.formats)}, not {format_name}",
            "/kind",
        )
    return kind
