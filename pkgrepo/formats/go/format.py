"""The Go format: modules for the go command, by the module proxy protocol (https://go.dev/ref/mod#goproxy-protocol)."""

from __future__ import annotations

from pkgrepo.auth.permissions.format_rights import FormatRights, prefixes
from pkgrepo.formats.go import imported, index, mirrored, names, proxied, setup
from pkgrepo.formats.go.names import bound_key, check_module, check_version, escape, sort_key
from pkgrepo.formats.go.publishing import take_file
from pkgrepo.formats.go.routes import ROUTES
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format, Look
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import Folder, Uploads
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document_of
from pkgrepo.proxy.format import Proxied, rewind
from pkgrepo.proxy.schema import usual_configurations
from pkgrepo.repositories.format import Ecosystem, Layout, PackageUrls, VersionKinds
from pkgrepo.repositories.semver import is_prerelease
from pkgrepo.repositories.version_ranges import Ranges, one_build

ICON = '<path d="M14 9H9a4 4 0 1 0 4 4h-2.5"/><path d="M22 13a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM2 11h2M1 14h3"/>'
FOLDERS = (Folder("go.mod", "module zip"),)  # that clients pack
CACHE_SIZE = 16 * 1024 * 1024  # bytes of lists


def go() -> Format:
    """The format with its caches."""
    caches = SplicedDocuments(index.CONTENT_TYPES, cache_size=CACHE_SIZE)
    return Format(
        name=mirrored.NAME,
        aliases=("golang", "gomod"),
        configurations=usual_configurations("the Go format"),
        package_key=check_module,
        package_urls=PackageUrls(types=("golang",)),
        version_key=lambda text: check_version(f"v{text.removeprefix('v')}"),
        index=index.index_module,
        rights=FormatRights(
            patterns=lambda module: (module, *(f"{each}/*" for each in prefixes(module, "/")[1:])),
            stem=lambda pattern: (pattern.removesuffix("/*"), ""),
            forms="example.com/tools (one module) or example.com/* (those below it)",
        ),
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease),
        single_file=True,
        accepts=lambda needed, version: sort_key(version) >= bound_key(needed.partition(" ")[2]),  # at least that one
        ranges=Ranges(sort=sort_key, builds=one_build(bound_key), written="v1.2.3 or >=v1.2 <v2"),
        ecosystem=Ecosystem(
            name="Go", package_key=check_module, sort=bound_key, builds=one_build(bound_key), semantic=True
        ),
        layout=Layout(
            folder=lambda module: f"{escape(module)}/{names.MARK}",
            places=lambda module, version: [names.file_path(module, version, kind) for kind in names.KINDS],
        ),
        resource=serve(ROUTES, caches),
        mirrored=mirrored.MIRRORED,
        imported=imported.IMPORTED,
        token_clients=("go",),
        look=Look(icon=ICON, light="#00677f", dark="#5fd0e8", programs="go", starter="go"),
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
