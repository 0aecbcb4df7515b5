"""The Helm format: a repository of charts that helm installs from."""

from __future__ import annotations

from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import Folder, Uploads
from pkgrepo.gateway.whole_lists import WholeLists
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_sections
from pkgrepo.proxy.format import Proxied, latest_release, read_by_version, rewind
from pkgrepo.proxy.schema import ListProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations
from pkgrepo.repositories.format import Layout, VersionKinds
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.publish_policy import PublishConfig
from pkgrepo.repositories.semver import builds, constraint_accepts, is_prerelease
from pkgrepo.repositories.version_ranges import Ranges

from .chart import meta_of
from .entries import ENTRY, declared
from .facts import FACTS
from .imported import IMPORTED, MIRRORED
from .index import chart_request, index_chart, index_request, render, splice
from .names import ARCHIVE, INDEX, check_name, sort_key, version_key, version_places
from .publish import make_remote_release, take_file
from .routes import ROUTES
from .setup import install_snippets, snippets

FOLDERS = (Folder("Chart.yaml", "chart"),)  # that clients pack


def helm() -> Format:
    """The format with its caches."""
    proxied = Proxied(
        document_request=chart_request,
        make_release=make_remote_release,
        kinds=lambda _form: (ENTRY,),
        declares=Declares((ENTRY,), lambda fragments: meta_of(declared(fragments))),
        read_parts=read_by_version,
        splice=splice,
        rewind=rewind,
        latest_form=ENTRY,
        latest=lambda _name, members: latest_release(members, is_prerelease),
    )
    lists = WholeLists(index_request(), ENTRY, proxied, render)
    return Format(
        **FACTS.fields,
        artifact="application/vnd.cncf.helm.config.v1+json",
        configurations=Configurations("the Helm format", PublishConfig | ListProxyConfig | VirtualConfig),
        package_key=check_name,
        version_key=version_key,
        index=index_chart,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease),
        single_file=True,
        accepts=constraint_accepts,
        ranges=Ranges(sort=sort_key, builds=lambda text: builds(text.removeprefix("v")), written=">=1.5 <2.0 or 1.*"),
        layout=Layout(folder=lambda key: f"packages/{key}", places=version_places),
        resource=serve(ROUTES, lists),
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("helm",),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(repository=[ClientDocument(path=INDEX, named=_named)]),
        uploads=Uploads("charts", {ARCHIVE: ".+-.+"}, take_file, folders=FOLDERS, caches=lists),
        proxied=proxied,
        restore_lists=restored_sections(index_request(), ENTRY),
        address=AddressShape(below=("/index.yaml",)),
        probes=lambda url: ((f"{url}/{INDEX}", (200,)),),
        dated=True,
    )


def _named(path: str, sha256: str) -> str:
    return sha256 if path.endswith(ARCHIVE) else ""
