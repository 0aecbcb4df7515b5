"""The Cargo format: the registry that cargo publishes to and resolves from."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.cargo import names, proxied
from pkgrepo.formats.cargo.changes import take_file
from pkgrepo.formats.cargo.index import INDEX, apply_change, latest, make_documents, read_parts, rewind, splice
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import Folder, Uploads
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document_of, restored_versions
from pkgrepo.proxy.format import OwnFacts, Proxied
from pkgrepo.repositories import semver
from pkgrepo.repositories.format import VersionKinds

from .configuration import CONFIGURATIONS
from .facts import FACTS
from .imported import IMPORTED
from .mirrored import MIRRORED
from .routes import EXCHANGE, ROUTES
from .setup import install_snippets, snippets

FOLDERS: Final = (Folder("Cargo.toml", advice="`cargo publish --registry NAME` packs and sends a crate"),)


def cargo() -> Format:
    """The format with its caches."""
    caches = make_documents()
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        package_key=names.package_key,
        version_key=lambda text: semver.parse_version(text).key,
        index=apply_change,
        versions=VersionKinds(sort=semver.sort_key, prerelease=semver.is_prerelease),
        single_file=True,
        runs_at_install=lambda meta, _paths: bool(meta.get("runs")) if meta else None,
        accepts=semver.accepts,
        ranges=semver.RANGES,
        resource=serve(ROUTES, caches),
        root_exchanges=EXCHANGE.roots,
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("cargo",),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(
            repository=[ClientDocument(path="index/config.json", absolute=True)],
            package=lambda key, _: [
                ClientDocument(path=f"index/{names.prefix(key)}/{key}", named=lambda _, digest: digest)
            ],
            version=lambda name, each: [ClientDocument(path=f"api/v1/crates/{name}/{each.text}/download")],
        ),
        uploads=Uploads("crates", {names.CRATE: ".+-.+"}, take_file, folders=FOLDERS, caches=caches),
        proxied=Proxied(
            document_request=proxied.index_question,
            make_release=proxied.make_release,
            kinds=lambda form: (form,),
            read_parts=read_parts,
            splice=splice,
            rewind=rewind,
            latest_form=INDEX,
            latest=latest,
            own_facts=OwnFacts(data=frozenset({"licences", "install_scripts"}), read=proxied.read_own),
        ),
        restore_documents=restored_document_of(proxied.index_question, restored_versions(proxied.restored_line)),
        address=AddressShape(below=("/config.json", "/api/v1/crates")),
        probes=lambda url: [(f"{url}/config.json", (200,))],
        dated=True,
        caches=caches.caches("crates"),
    )
