"""The Ruby gem format: the server that gem and Bundler talk to."""

from __future__ import annotations

from pkgrepo.formats.rubygems import paths
from pkgrepo.formats.rubygems.drilled import DRILLED
from pkgrepo.formats.rubygems.index.gem_lists import GEM_LISTS
from pkgrepo.formats.rubygems.index.indexing import KINDS, compact_versions, latest, read_parts, splice
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.inside import CONTENTS, DIFFERS, look
from pkgrepo.formats.rubygems.proxied.merged_lists import Caches
from pkgrepo.formats.rubygems.proxied.upstream import (
    gem_server_probes,
    info_question,
    main_of,
    make_release,
    read_own,
    restore_info,
    restore_lists,
)
from pkgrepo.formats.rubygems.push.requests import take_file
from pkgrepo.formats.rubygems.ranges import RANGES, accepts
from pkgrepo.formats.rubygems.token_exchange import EXCHANGE
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import Uploads
from pkgrepo.model import RepositoryType
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document, restored_document_of
from pkgrepo.proxy.format import OwnFacts, Proxied, rewind
from pkgrepo.repositories.format import Layout, VersionKinds

from .configuration import CONFIGURATIONS
from .facts import FACTS
from .gemspec import EXTENSIONS
from .imported import IMPORTED
from .indexer import apply_change
from .mirrored import MIRRORED
from .names import check_full_version, check_name, is_prerelease, order_key
from .provenance import ATTESTS, attestations_question, kept_attestations
from .routes import ROUTES
from .setup import install_snippets, snippets


def ruby() -> Format:
    """The format with its caches."""
    caches = Caches()
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        lists_noted=frozenset({RepositoryType.HOSTED, RepositoryType.PROXY}),
        package_key=check_name,
        version_key=check_full_version,
        index=apply_change,
        versions=VersionKinds(
            sort=lambda text: order_key(text.partition("-")[0]),
            prerelease=lambda text: is_prerelease(text.partition("-")[0]),
        ),
        single_file=True,
        runs_at_install=lambda meta, _paths: meta.get(EXTENSIONS),
        inside=look,
        attests=ATTESTS,
        contents=CONTENTS,
        differs=DIFFERS,
        accepts=accepts,
        ranges=RANGES,
        public_path=paths.public_path,
        layout=Layout(path=paths.readable_path, folder=paths.readable_folder, places=paths.readable_places),
        resource=serve(ROUTES, caches),
        root_exchanges=EXCHANGE.roots,
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("gem", "bundler"),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(
            repository=[
                ClientDocument(path=each)
                for each in ("versions", "names", "specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz")
            ],
            package=lambda _key, name: (_info(name),),
        ),
        uploads=Uploads(what="gems", names={".gem": ".+-.+"}, take=take_file, caches=caches),
        proxied=Proxied(
            document_request=info_question,
            make_release=make_release,
            kinds=KINDS.__getitem__,
            read_parts=read_parts,
            splice=splice,
            rewind=rewind,
            latest_form=INFO,
            latest=lambda _name, members: latest(members),
            own_facts=OwnFacts(
                data=frozenset({"licences", "install_scripts"}),
                read=read_own,
                main_of=main_of,
                attestations=attestations_question,
                attestations_in=kept_attestations,
            ),
            drilled=DRILLED,
        ),
        restore_documents=restored_document_of(info_question, restore_info),
        restore_lists=lambda reader, repository: [
            restored_document(*each) for each in restore_lists(reader, repository.id)
        ],
        compact=compact_versions,
        list_settings=frozenset({"compact_index"}),
        address=AddressShape(below=("/api/v1/", "/specs.4.8.gz", "/latest_specs.4.8.gz")),
        probes=gem_server_probes,
        dated=True,
        caches={**caches.info.caches("gems"), "groups of lists of gems": GEM_LISTS.renderer.cache},
    )


def _info(name: str) -> ClientDocument:
    return ClientDocument(path=f"info/{name}", named=lambda path, sha256: sha256 if path.startswith("gems/") else "")
