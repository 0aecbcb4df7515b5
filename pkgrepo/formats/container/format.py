"""The container format: images and artifacts over the registry API (OCI distribution 1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from twisted.application.service import IService
from twisted.web.resource import IResource

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.registry import ping_response
from pkgrepo.formats.container.trust.signatures import Keyring
from pkgrepo.formats.container.trust.visibility import SignatureVerifier
from pkgrepo.gateway.format import Format, KeptImage
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded, UploadField, Uploads
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.model import Repository
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.explaining import Explanation
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.format import Images
from pkgrepo.repositories.images.quarantine import QuarantineExpiry
from pkgrepo.repositories.policy.refusals import RuleRefused

from .configuration import CONFIGURATIONS, immutable_tags
from .facts import FACTS
from .imported import IMPORTED
from .inside import CONTENTS
from .mirrored import MIRRORED
from .names import RANGES, DigestInvalid, NameInvalid, TagInvalid, check_place, parse_name, parse_tag
from .proxied.explaining import ImageExplainer
from .proxied.keeping import ImageKeeper
from .proxied.registry_client import api_of, authorize
from .proxied.replication import ImageCopies
from .routes import RegistrySite
from .saved_images import publish_sent
from .setup import artifact_snippets, install_snippets, logins, snippets
from .target import Target, Terms


def container(*, service: str = "pkgrepo", ping: str = "auto", trusted_keys: tuple[str, ...] = ()) -> Format:
    """``service``, ``ping`` and ``trusted_keys`` are the settings of the section ``container``."""
    keyring = Keyring(trusted_keys)
    images_of = cache(UpstreamImages.make)  # which all sites over the same services share
    site = partial(RegistrySite, service=service, ping=ping, keyring=keyring)

    def resource(repository: Repository, services: Services) -> IResource:
        """The registry of one repository, at its own address."""
        addresses = ImageAddresses(services.registry, default=repository.path)
        return site(services, addresses, upstream_images=images_of(services), repository=repository).app.resource()

    def registry(services: Services, tokens: IResource) -> IResource:
        """The registry of all repositories, at the address that container clients know."""
        return site(services, services.images, upstream_images=images_of(services), token=tokens).app.resource()

    def quarantine(services: Services, reactor: Any) -> IService:
        return QuarantineExpiry(
            catalog=services.catalog,
            registry=services.registry,
            content=services.content,
            verify=SignatureVerifier(services, keyring).verify_stored,
            keys_of=keyring.ids,
            clock=services.clock,
            reactor=reactor,
        )

    async def take(context: Context[Any], request: Request, sent: SentFile) -> Uploaded:
        """Publish the images in an archive."""
        own, services = context.repository, context.services
        addresses = ImageAddresses(services.registry, default=own.path)
        registry = site(services, addresses, upstream_images=images_of(services), repository=own).context
        try:
            return await publish_sent(registry, own, request, sent)
        except (DigestInvalid, NameInvalid, TagInvalid) as error:
            raise Invalid(str(error)) from None

    async def explain(
        services: Services, repository: Repository, package_key: str, version: str | None, *, revalidate: bool
    ) -> Explanation:
        explainer = ImageExplainer(services, images_of(services), keyring.ids)
        return await explainer.explain(repository, package_key, version, revalidate=revalidate)

    async def refusal(
        services: Services, repository: Repository, package_key: str, version: str, asked: Repository
    ) -> RuleRefused | None:
        terms = Terms(asked, lambda _: True, generation=0)
        target = Target(repository, package_key, package_key, base="", scope="", terms=terms)
        try:
            await images_of(services).rules.choose(target, version, Trace(), counted=False)
        except RuleRefused as error:
            return error
        return None

    async def keep_image(
        services: Services, repository: Repository, image: str, reference: str, platforms: Sequence[str], /
    ) -> KeptImage:
        return await ImageKeeper(services, images_of(services)).keep(repository, image, reference, platforms)

    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        package_key=_package_key,
        heeds_yanks=False,
        version_key=_version_key,
        check_place=check_place,
        warnings=keyring.warnings,
        ranges=RANGES,
        contents=CONTENTS,
        images=Images(signature_keys=keyring.ids, immutable_tags=immutable_tags),
        resource=resource,
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("docker",),
        logins=logins,
        setup=lambda url, publishes: snippets(url, _path_of(url)),  # noqa: ARG005 - they show both
        uploads=Uploads(
            what="archives of images: docker save, podman save, skopeo copy ... oci-archive:FILE, buildx",
            names={".tar": ".+", ".tar.gz": ".+", ".tgz": ".+"},
            take=take,
            fields=(
                UploadField("image", "Image, such as team/app", needed=True),
                UploadField("tag", "Tag (that of the archive, if it is empty)"),
            ),
        ),
        install=lambda url, name, version: install_snippets(url, _path_of(url), name, version),
        install_artifact=lambda type_, url, name, version, *, push: artifact_snippets(
            type_, url, _path_of(url), name, version, push=push
        ),
        # registries that want a token answer the version check 401
        address=AddressShape(below=("/manifests/", "/blobs/", "/tags/list")),
        probes=lambda url: ((f"{api_of(url)[0]}/", (200, 401)),),
        authorize=authorize,
        explain=explain,
        refusal=refusal,
        keep_image=keep_image,
        copies=lambda services: ImageCopies(services, images_of(services)),
        branches=lambda services, tokens: {"v2": registry(services, tokens)},
        ping_responses=dict.fromkeys((b"/v2", b"/v2/"), ping_response()),
        background=lambda services, reactor: [quarantine(services, reactor)],
        check_settings=keyring.check,
    )


def _path_of(url: str) -> str:
    """The storage and name of the repository with a URL; empty at its own host."""
    return "/".join(urlsplit(url).path.split("/")[-2:])


def _package_key(name: str) -> str:
    try:
        return parse_name(name)
    except NameInvalid as error:
        raise Invalid(str(error)) from None


def _version_key(text: str) -> str:
    try:
        return parse_tag(text)
    except TagInvalid as error:
        raise Invalid(str(error)) from None
