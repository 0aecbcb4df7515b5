"""The Go format: modules for the go command, by the module proxy protocol (https://go.dev/ref/mod#goproxy-protocol)."""

from __future__ import annotations

from pkgrepo.formats.go import imported, index, mirrored, names, proxied, setup
from pkgrepo.formats.go.facts import FACTS
from pkgrepo.formats.go.names import bound_key, check_module, check_version, escape, sort_key
from pkgrepo.formats.go.publishing import take_file
from pkgrepo.formats.go.routes import ROUTES
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import Folder, Uploads
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document_of
from pkgrepo.proxy.format import Proxied, rewind
from pkgrepo.proxy.schema import usual_configurations
from pkgrepo.repositories.format import Layout, VersionKinds
from pkgrepo.repositories.semver import is_prerelease
from pkgrepo.repositories.version_ranges import Ranges, one_build

FOLDERS = (Folder("go.mod", "module zip"),)  # that clients pack
CACHE_SIZE = 16 * 1024 * 1024  # bytes of lists


def go() -> Format:
    """The format with its caches."""
    caches = SplicedDocuments(index.CONTENT_TYPES, cache_size=CACHE_SIZE)
    return Format(
        **FACTS.fields,
        configurations=usual_configurations("the Go format"),
        package_key=check_module,
        version_key=lambda text: check_version(f"v{text.removeprefix('v')}"),
        index=index.index_module,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease),
        single_file=True,
        accepts=lambda needed, version: sort_key(version) >= bound_key(needed.partition(" ")[2]),  # at least that one
        ranges=Ranges(sort=sort_key, builds=one_build(bound_key), written="v1.2.3 or >=v1.2 <v2"),
        layout=Layout(
            folder=lambda module: f"{escape(module)}/{names.MARK}",
            places=lambda module, version: [names.file_path(module, version, kind) for kind in names.KINDS],
        ),
        resource=serve(ROUTES, caches),
        mirrored=mirrored.MIRRORED,
        imported=imported.IMPORTED,
        token_clients=("go",),
        setup=setup.snippets,
        install=setup.install_snippets,
        uploads=Uploads("module zips", {".zip": ".+"}, take_file, folders=FOLDERS, caches=caches),
        client_documents=ClientDocuments(
            package=lambda module, _: [ClientDocument(path=f"{escape(module)}/{each}") for each in names.LISTED]
        ),
        proxied=Proxied(
            document_request=proxied.question,
            file_request=proxied.file_question,
            make_release=proxied.make_release,
            kinds=index.KINDS.__getitem__,
            read_parts=index.read_parts,
            splice=index.splice,
            rewind=rewind,
            latest_form=index.LATEST,
            latest=index.latest,
            package_of=lambda key: key.partition("@")[0],
            own_facts=proxied.OWN_FACTS,
        ),
        restore_documents=restored_document_of(proxied.question, proxied.restore),
        address=AddressShape(below=("/@v/", "/@latest/")),
        probes=lambda url: ((f"{url}/", (200, 400, 404, 410)),),
        dated=True,
        caches=caches.caches("lists of Go modules"),
    )
