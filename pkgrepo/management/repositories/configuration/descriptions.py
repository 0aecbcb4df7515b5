"""What the parts and the fields of configurations mean, one sentence each, for people who fill in forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PARTS: Final = {
    "auth": "Whether reads of a public repository need credentials.",
    "cache": "What is kept of upstream servers, and for how long.",
    "cache_ttl": "How long metadata of upstream servers is used before they are asked again.",
    "compact_index": "What the list of versions contains for Bundler.",
    "conda": "Whether pure wheels become packages in the conda channel beside the repository.",
    "config": "The upstream servers of the repository, in another form of proxy; it is stored as proxy.",
    "default": "Whether image names without storage and repository refer to this repository.",
    "deploy": "What every version in a bundle must have beside its POM.",
    "library_prefix": "When library/ stands before names without a slash at the upstreams; auto tries both.",
    "members": "The repositories that a virtual one consists of, in the order in which they are asked.",
    "page": "A text in Markdown that the console shows above the packages.",
    "policy": "Rules for uploads and for the packages that are served.",
    "proxy": "The upstream routes of the repository; the one with the highest priority is tried first.",
    "publish_snapshots_to": "The member to which snapshots go that are published to a virtual repository, if not to "
    "publish_to (Java only).",
    "publish_to": "The member to which packages go that are published to a virtual repository.",
    "push_rules": "Rules for pushes.",
    "quota": "The maximum size of the repository.",
    "resolution": "How the members of a virtual repository that are not hosted are joined.",
    "retention": "Which versions are removed automatically.",
    "routes_are_replicas": "The routes are copies of each other; while one fails, the next serves what it has.",
    "trust": "The public keys that are trusted, and how long an unsigned image is kept.",
}

# By the name of the field, in whatever object it is.
FIELDS: Final = {
    "allow_delete": "Clients may delete manifests and tags.",
    "allow_overwrite": "A file may be published again with other content.",
    "allow_sparse": "Accept manifests that refer to missing content, such as mirrors of some platforms only.",
    "allow_tag_overwrite": "A push may move an existing tag.",
    "auth": "The credentials of the route, which are sent to its host only, and to its token service.",
    "ca_file": "The absolute path of a PEM file on the server with the certificates that the upstream is checked by.",
    "auto_create_projects": "With must_be_project_member: the first pusher of a name that no project owns becomes the "
    "owner of a new project, instead of being refused.",
    "connect_timeout": "Longest time until a connection is made, such as 5s; else that of the server.",
    "created_at": "List when each version was published.",
    "days": "Hide versions until they were published this many days ago.",
    "drop_yanked": "Leave yanked versions out.",
    "enabled": "Reading needs a login or a token, also while the repository is public.",
    "exempt": "Patterns of names whose versions are never hidden.",
    "from_wheels": "Pure wheels become packages in the conda channel.",
    "hosts": "Addresses under which hosts that the upstream names are reached.",
    "idle_timeout": "Longest time without an answer or a part of one, such as 30s; else that of the server.",
    "javadoc": "Each main jar has a javadoc jar.",
    "keep_removed": "Go on serving cached files of versions that the upstream has removed, by their exact addresses.",
    "keys": "Public keys in PEM; without any, those of the server.",
    "library_prefix": "When library/ stands before names without a slash at the upstreams; auto tries both.",
    "manifest_mismatch": "What to do if the sent manifest differs from package.json in the tarball: tarball stores the "
    "values of the tarball, refuse refuses the publish.",
    "max_bytes": "Bytes that are kept; what was not used for longest goes first.",
    "merge_names": "Patterns of names whose versions are those of hosted members and of upstreams together.",
    "minimum_release_age": "How old versions of upstreams must be.",
    "must_be_project_member": "Only members of the project that owns a name publish, change and remove it.",
    "must_use_auth_token_for_push": "Passwords neither publish nor remove, only access tokens do.",
    "name": "How readers see it in errors; without one it is the host.",
    "negative_ttl": "How long it is remembered that an upstream does not have something, such as 30s or 5m.",
    "other_media_types": "Accept any JSON document as a manifest.",
    "overwrite_exempt": "Patterns of tags that can always be moved.",
    "packages": "Patterns of names; the upstream is asked only for these.",
    "pass_searches": "Whether upstreams get what people search for.",
    "password": "It is shown as ***, which means the stored one.",
    "priority": "The route with the highest number is asked first.",
    "push_policy": "The versions that are accepted; STAGES means both.",
    "refuse_upstream_names": "The first publish of a name that an upstream has is refused.",
    "require_content_trust": "Readers see an image only after it has a valid signature.",
    "require_service_deploy": "Only bundles are accepted, no single files.",
    "reserved_names": "Patterns of names that no upstream is ever asked for.",
    "reuse_deleted_names": "The name of something that was deleted can be published again.",
    "revalidation_ttl_seconds": "Seconds for which metadata are used before they are asked for again; see cache_ttl.",
    "routes": "The upstreams.",
    "signatures": "Each file has a PGP signature.",
    "sources": "Each main jar has a sources jar.",
    "stale_if_gone": "How long a tag is served after the upstream has removed it, such as 12h or 2d.",
    "strict_filenames": "Only normalised file names are accepted.",
    "token": "Sent as a bearer token, instead of username and password; shown as ***, which means the stored one.",
    "token_hosts": "Hosts of token services on other sites, which may get the credentials of the route.",
    "trusted_keys": "Armoured OpenPGP public keys; each signature must be a valid one by one of them.",
    "unique_numbers": "Two versions that compare as equal are refused.",
    "unique_spellings": "A name that differs from another one only in spelling is refused.",
    "unused_days": "Days after which what nobody asked for is removed.",
    "upstream_auth": "The credentials of the upstream; stored as those of its route.",
    "upstream_url": "Where the only upstream is; stored as a route.",
    "url": "Where the upstream is, such as https://registry.example/.",
    "username": "For Basic authentication at the upstream.",
    "window_s": "Seconds in which a pushed image must be signed.",
    "yanking_allowed": "Clients may delete files, versions and artifacts.",
}


def described(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a format's configuration, with a description of each field that has none."""
    definitions = schema.get("$defs", {})
    whole = {name: _described(each) for name, each in definitions.items()}
    return {**_described(schema), **({"$defs": whole} if whole else {})}


def _described(definition: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = definition.get("properties", {})
    texts = PARTS if "type" in properties else FIELDS  # only configurations of repositories have a type
    found = {
        name: {"description": texts[name], **value} if name in texts else dict(value)
        for name, value in properties.items()
    }
    return {**definition, **({"properties": found} if found else {})}
