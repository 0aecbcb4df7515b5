"""The container format: the implementation of ``IFormat`` and of the optional interfaces beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.application.service import IService
from twisted.internet.interfaces import IReactorTime
from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.access import ping_answer
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.trust.signatures import Keyring
from pkgrepo.formats.container.trust.visibility import SignatureVerifier
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.interfaces import (
    IBackgroundFormat,
    IConfiguredFormat,
    IExplainingFormat,
    IFormat,
    IImageFormat,
    IProbedFormat,
    IRootFormat,
)
from pkgrepo.model import Repository
from pkgrepo.proxy.explaining import Explanation
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.images.quarantine import QuarantineExpiry
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog.images.trust import Keys

from .configuration import CONFIGURATIONS
from .names import NameInvalid, TagInvalid, check_place, parse_name, parse_tag
from .proxied.explaining import ImageExplainer
from .proxied.registry_client import api_of
from .routes import RegistrySite
from .setup import install_snippets, snippets


@implementer(IFormat, IConfiguredFormat, IRootFormat, IBackgroundFormat, IImageFormat, IProbedFormat, IExplainingFormat)
class ContainerFormat(FormatBase):
    """
    Images and artifacts over the registry API (OCI distribution 1.1).

    ``service``, ``ping`` and ``trusted_keys`` are the settings of the section ``container``.
    """

    name = "docker"
    aliases = ("container", "oci")
    configurations = CONFIGURATIONS

    def __init__(self, *, service: str = "pkgrepo", ping: str = "auto", trusted_keys: tuple[str, ...] = ()) -> None:
        self._service = service
        self._ping = ping
        self._keyring = Keyring(trusted_keys)
        self._upstream_images: tuple[Services, UpstreamImages] | None = None

    def check_place(self, storage: str, repository: str) -> None:
        """See L{IFormat.check_place}."""
        check_place(storage, repository)

    def resource(self, repository: Repository, services: Services) -> IResource:
        """The registry of one repository at its own address; C{branches} serves all repositories at C{/v2/}."""
        addresses = ImageAddresses(services.registry, default=repository.path)
        return RegistrySite(
            services,
            addresses,
            service=self._service,
            ping=self._ping,
            keyring=self._keyring,
            upstream_images=self._images_for(services),
            repository=repository,
        ).resource()

    def check_settings(self) -> None:
        """The trusted keys. See L{IConfiguredFormat.check_settings}."""
        self._keyring.check()

    def branches(self, services: Services, token_service: IResource) -> Mapping[str, IResource]:
        """Every repository, at the address that container clients know. See L{IRootFormat.branches}."""
        site = RegistrySite(
            services,
            services.images,
            service=self._service,
            ping=self._ping,
            keyring=self._keyring,
            upstream_images=self._images_for(services),
            token=token_service,
        )
        return {"v2": site.resource()}

    def ping_answers(self) -> Mapping[bytes, Answer]:
        """That this is a registry. See L{IRootFormat.ping_answers}."""
        return dict.fromkeys((b"/v2", b"/v2/"), ping_answer())

    def background_services(self, services: Services, reactor: IReactorTime) -> Sequence[IService]:
        """The task that ends quarantines. See L{IBackgroundFormat.background_services}."""
        watch = QuarantineExpiry(
            catalog=services.catalog,
            registry=services.registry,
            publisher=services.publisher,
            verify=SignatureVerifier(services, self._keyring).verify_stored,
            keys_of=self._keyring.ids,
            clock=services.clock,
            reactor=reactor,
        )
        return (watch,)

    def signature_keys(self, repository: Repository) -> Keys:
        """See L{IImageFormat.signature_keys}."""
        return self._keyring.ids(repository)

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """The version check; registries that want a token answer it 401. See L{IProbedFormat.probes}."""
        return ((f"{api_of(url)[0]}/", (200, 401)),)

    async def explain(
        self, services: Services, repository: Repository, package_key: str, version: str | None, *, revalidate: bool
    ) -> Explanation:
        """See L{IExplainingFormat.explain}."""
        explainer = ImageExplainer(services, self._images_for(services), self.signature_keys)
        return await explainer.explain(repository, package_key, version, revalidate=revalidate)

    def warnings(self, repository: Repository) -> Sequence[str]:
        """See L{IFormat.warnings}."""
        return self._keyring.warnings(repository)

    def index(self, index: PackageIndex, change: Change) -> None:
        """Do nothing: every list is read from the catalog on request."""

    def package_key(self, name: str) -> str:
        """See L{IFormat.package_key}."""
        try:
            return parse_name(name)
        except NameInvalid as error:
            raise Invalid(str(error)) from None

    def version_key(self, text: str) -> str:
        """See L{IFormat.version_key}."""
        try:
            return parse_tag(text)
        except TagInvalid as error:
            raise Invalid(str(error)) from None

    def needs_no_credentials(self, path: bytes) -> bool:
        """All paths: the challenge names the token service. See L{IFormat.needs_no_credentials}."""
        return path == b"v2" or path.startswith(b"v2/")

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(base_url, repository.path)

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(base_url, repository.path, name, version)

    def _images_for(self, services: Services) -> UpstreamImages:
        """The images of upstreams, which all sites over these services share."""
        if self._upstream_images is None or self._upstream_images[0] is not services:
            self._upstream_images = (services, UpstreamImages.make(services))
        return self._upstream_images[1]
