"""The configuration of a container repository."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal, Self

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy import schema
from pkgrepo.repositories import configuration
from pkgrepo.repositories.images.push import fixed_tags
from pkgrepo.repositories.publish_policy import HostedPolicy
from pkgrepo.untrusted.public_keys import KeyInvalid, parse_key

# Tags that cosign and oras move with each signature or referrer.
EXEMPT = re.compile(r"sha256-[0-9a-f]{64}(\.(sig|att|sbom))?")

MOST_KEYS = 16  # of a repository; each signature is verified with each of them


class PushRules(configuration.PushRules, frozen=True):
    """
    Rules for pushes.

    ``allow_tag_overwrite`` lets a push move an existing tag. With ``require_content_trust`` readers see an image only
    after it has a valid signature.
    """

    allow_tag_overwrite: Annotated[bool, meaning("A push may move an existing tag.")] = False
    require_content_trust: Annotated[bool, meaning("Readers see an image only after it has a valid signature.")] = False


class Policy(HostedPolicy, frozen=True):
    """
    Rules for stored images.

    ``allow_sparse`` accepts manifests that refer to missing content, such as mirrors of some platforms only.
    ``other_media_types`` accepts any JSON document as a manifest. Tags that match a pattern of ``overwrite_exempt`` can
    always be moved; those of ``immutable_tags`` never, and they are not deleted.
    """

    allow_sparse: Annotated[
        bool, meaning("Accept manifests that refer to missing content, such as mirrors of some platforms only.")
    ] = False
    other_media_types: Annotated[bool, meaning("Accept any JSON document as a manifest.")] = False
    allow_delete: Annotated[bool, meaning("Clients may delete manifests and tags.")] = True
    overwrite_exempt: Annotated[list[str], meaning("Patterns of tags that can always be moved.")] = []
    immutable_tags: Annotated[
        list[str],
        meaning("Patterns of tags, such as v*, that are neither moved nor deleted, whatever else is allowed."),
    ] = []


class TrustPolicy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    The trusted public keys, and how long an unsigned image is kept.

    ``keys`` are in PEM (ECDSA P-256, Ed25519, RSA from 2048 bits); an empty list means the keys of the server.
    ``window_s`` is the time in seconds in which a pushed image must be signed.
    """

    keys: Annotated[
        list[str], meaning("Public keys in PEM; without any, those of the server.", max_length=MOST_KEYS)
    ] = []
    window_s: Annotated[int, meaning("Seconds in which a pushed image must be signed.", ge=60, le=30 * 86400)] = 3600


class HostedConfig(configuration.HostedConfig, frozen=True):
    """
    The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part, the others are settings.

    ``default`` marks the repository for image names that do not begin with a storage and a repository.
    """

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: Annotated[PushRules, meaning("Rules for pushes.")] = PushRules()
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None
    trust: Annotated[
        TrustPolicy | None, meaning("The public keys that are trusted, and how long an unsigned image is kept.")
    ] = None
    default: Annotated[
        bool | None, meaning("Whether image names without storage and repository refer to this repository.")
    ] = None

    def normalised(self) -> Self:
        """Check the trusted keys. :raises Invalid: a key cannot be used, with its JSON pointer"""
        for index, text in enumerate(self.trust.keys if self.trust else ()):
            try:
                parse_key(text)
            except KeyInvalid as error:
                raise Invalid(str(error), f"/trust/keys/{index}") from None
        return super().normalised()


class ProxyConfig(schema.ProxyConfig, frozen=True, tag=RepositoryType.PROXY.value):
    """
    The configuration of a proxy repository, see there; ``default`` is that of hosted ones.

    library_prefix tells when ``library/`` stands before names without a slash at the upstreams: auto tries both forms.
    minimum_release_age counts from when this server first saw a manifest: registries tell no time of publication.
    """

    library_prefix: Annotated[
        Literal["auto", "always", "never"] | None,
        meaning("When library/ stands before names without a slash at the upstreams; auto tries both."),
    ] = None
    default: Annotated[
        bool | None, meaning("Whether image names without storage and repository refer to this repository.")
    ] = None


class VirtualConfig(schema.VirtualConfig, frozen=True, kw_only=True, tag=RepositoryType.VIRTUAL.value):
    """The configuration of a virtual repository, see there; ``default`` is that of hosted ones."""

    default: Annotated[
        bool | None, meaning("Whether image names without storage and repository refer to this repository.")
    ] = None

    def normalised(self) -> Self:
        """The configuration as it is stored. :raises Invalid: it joins images, whose tags cannot be joined"""
        if self.resolution != "first":
            raise Invalid("an image is served by the first member that has it", "/resolution")
        return super().normalised()


CONFIGURATIONS = configuration.Configurations(
    "container images", HostedConfig | ProxyConfig | VirtualConfig, part_aliases={"docker_push_rules": "push_rules"}
)


def push_rules(repository: Repository) -> PushRules:
    """The push rules of a repository."""
    return msgspec.convert(repository.config.get("push_rules", {}), PushRules)


def policy(repository: Repository) -> Policy:
    """The policy of a repository."""
    return msgspec.convert(repository.policy, Policy)


def trust_policy(repository: Repository) -> TrustPolicy | None:
    """The trusted keys and the quarantine of a repository, or None where no signature is required."""
    if not push_rules(repository).require_content_trust:
        return None
    return msgspec.convert(repository.settings.get("trust") or {}, TrustPolicy)


def immutable_tags(repository: Repository, tags: tuple[str, ...]) -> frozenset[str]:
    """The tags that the repository does not allow moving, of those given."""
    fixed = frozenset(fixed_tags(repository, tags))
    if push_rules(repository).allow_tag_overwrite:
        return fixed
    globs = policy(repository).overwrite_exempt
    return fixed | frozenset(
        tag for tag in tags if EXEMPT.fullmatch(tag) is None and not any(fnmatchcase(tag, glob) for glob in globs)
    )
