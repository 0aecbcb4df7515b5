"""What the search, the lasting and the mutable files use of the process."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import ICatalog
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.absences import Absences
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.publisher import Publisher

from .announced import Announcers
from .winners import Winners


@frozen(kw_only=True)
class Context:
    """The parts that all files of all proxies share; ``limits`` are those of one file."""

    catalog: ICatalog
    publisher: Publisher
    clock: Clock
    upstreams: Upstreams
    transfers: Transfers
    winners: Winners
    announcers: Announcers
    absences: Absences
    counters: CacheCounters
    limits: ReadLimits
