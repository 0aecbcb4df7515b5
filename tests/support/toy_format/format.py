"""What the server asks about the toy format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.caching.questions import restored_files_of
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.schema import MergingConfig, ProxyConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.format import VersionKinds
from pkgrepo.repositories.policy.schema import ServingPolicy
from pkgrepo.repositories.semver import builds, is_prerelease, parse_version
from pkgrepo.repositories.snippets import TOKEN, Snippet, command
from pkgrepo.repositories.version_ranges import Ranges

from .facts import FACTS
from .imported import IMPORTED, MIRRORED
from .index import document_request, fragments, index_files, latest, make_remote_release, read_parts, splice
from .names import INDEX, check_name, sort_key
from .routes import ROUTES, take_file


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository."""

    push_rules: Annotated[configuration.PushRules | None, meaning("Rules for pushes.")] = None
    policy: Annotated[ServingPolicy | None, meaning("Rules for the packages that are served.")] = None


def toy() -> Format:
    """The format with its caches."""
    caches = SplicedDocuments({INDEX: "application/json"}, cache_size=2**24)
    return Format(
        **FACTS.fields,
        configurations=configuration.Configurations("the toy format", HostedConfig | ProxyConfig | MergingConfig),
        package_key=check_name,
        version_key=lambda text: parse_version(text).key,
        index=index_files,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease),
        ranges=Ranges(sort=sort_key, builds=builds, written=">=1.0.0,<2.0.0, 1.* or 1.0.0"),
        heeds_yanks=False,
        resource=serve(ROUTES, caches),
        setup=_setup,
        token_clients=("curl",),
        install=lambda url, name, _version: [command("curl", "curl", "-O", f"{url}/{name}/{INDEX}")],
        client_documents=ClientDocuments(package=lambda key, _name: [_document(key)]),
        uploads=Uploads(
            what="files of any kind",
            names={"": ".+"},
            take=take_file,
            fields=(UploadField("path", "Folder, as PACKAGE/VERSION/", needed=True),),
            caches=caches,
        ),
        mirrored=MIRRORED,
        imported=IMPORTED,
        proxied=Proxied(
            document_request=document_request,
            make_release=make_remote_release,
            kinds=lambda form: (form,),
            read_parts=read_parts,
            splice=splice,
            latest_form=INDEX,
            latest=latest,
        ),
        restore_documents=restored_files_of(document_request, fragments),
        caches=caches.caches("toys"),
        dated=True,
    )


def _document(package: str) -> ClientDocument:
    return ClientDocument(path=f"{package}/{INDEX}", named=lambda _path, sha256: sha256)


def _setup(url: str, *, publishes: bool) -> Sequence[Snippet]:
    auth = ("-u", f"token:{TOKEN}")
    put = [command("curl", "curl", *auth, "-T", "FILE", f"{url}/PACKAGE/VERSION/FILE")] if publishes else []
    return [command("curl", "curl", *auth, f"{url}/PACKAGE/{INDEX}"), *put]
