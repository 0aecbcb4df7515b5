"""The raw format: files at any path, for curl, wget and all that reads a static tree."""

from __future__ import annotations

from pkgrepo.formats.raw.configuration import CONFIGURATIONS
from pkgrepo.formats.raw.facts import FACTS
from pkgrepo.formats.raw.imported import IMPORTED
from pkgrepo.formats.raw.mirrored import MIRRORED
from pkgrepo.formats.raw.paths import check_package, check_version, folder_of, is_prerelease, sort_key
from pkgrepo.formats.raw.proxied import VERSIONS, file_question, folder_question, latest, read_parts, release_of
from pkgrepo.formats.raw.routes import ROUTES, take_sent
from pkgrepo.formats.raw.setup import install_snippets, snippets
from pkgrepo.gateway.client_documents import ClientDocuments
from pkgrepo.gateway.folders.pages import ListingTurns
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.proxy.format import Proxied
from pkgrepo.repositories.format import Tree, VersionKinds
from pkgrepo.repositories.version_ranges import Ranges, one_build


def raw() -> Format:
    """The format with the permits of its listings."""
    turns = ListingTurns()
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        package_key=check_package,
        version_key=check_version,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease),
        ranges=Ranges(sort=sort_key, builds=one_build(sort_key), written=">=1.5,<2 or 1.5.*"),
        tree=Tree(directory=folder_of, places_vary=True),
        resource=serve(ROUTES, turns),
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("curl",),
        setup=snippets,
        client_documents=ClientDocuments(beside=(".sha256",)),
        install=install_snippets,
        uploads=Uploads(
            what="a file of any kind",
            names={"": ".+"},
            take=take_sent,
            fields=(UploadField("path", "Path; with a slash at the end the folder of the file"),),
            caches=turns,
        ),
        proxied=Proxied(
            document_request=folder_question,
            file_request=file_question,
            make_release=release_of,
            kinds=lambda _form: (),
            read_parts=read_parts,
            latest_form=VERSIONS,
            latest=latest,
        ),
        heeds_yanks=False,
        dated=True,
    )
