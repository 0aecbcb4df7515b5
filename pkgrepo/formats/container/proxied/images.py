"""What one process keeps in memory about the images of upstreams, put together."""

from __future__ import annotations

from typing import Self

from attrs import frozen

from pkgrepo.gateway.services import Services

from .ages import ReleaseAges
from .blobs import UpstreamBlobs
from .holders import Holders
from .lists import UpstreamLists
from .manifests import UpstreamManifests
from .places import Places
from .registry_client import RegistryClient
from .tokens import UpstreamTokens


@frozen
class UpstreamImages:
    """Images of the upstreams of all proxy repositories."""

    holders: Holders
    manifests: UpstreamManifests
    ages: ReleaseAges
    blobs: UpstreamBlobs
    lists: UpstreamLists

    @classmethod
    def make(cls, services: Services) -> Self:
        """The parts, with empty memories, except for that of what no upstream has."""
        catalog, publisher, clock = services.catalog, services.publisher, services.clock
        client = RegistryClient(services.proxy.upstreams, UpstreamTokens(lambda: clock.now_ms() / 1000))
        places, absences = Places(catalog, clock), services.proxy.absences
        manifests = UpstreamManifests(
            catalog=catalog,
            publisher=publisher,
            pools=services.pools,
            clock=clock,
            client=client,
            places=places,
            absences=absences,
            counters=services.proxy.counters,
        )
        return cls(
            holders=Holders(catalog=catalog, resolver=services.proxy.resolver, clock=clock),
            manifests=manifests,
            ages=ReleaseAges(catalog=catalog, clock=clock, manifests=manifests),
            blobs=UpstreamBlobs(
                catalog=catalog,
                publisher=publisher,
                transfers=services.proxy.transfers,
                client=client,
                places=places,
                absences=absences,
                counters=services.proxy.counters,
                largest=services.max_upload,
            ),
            lists=UpstreamLists(
                catalog=catalog,
                publisher=publisher,
                clock=clock,
                client=client,
                places=places,
                absences=absences,
            ),
        )
