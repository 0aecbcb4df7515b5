"""
Sums of the metrics of several processes, in the text format of Prometheus; the master imports it, and no more of this.

Counters and histograms are added up, and so are gauges of what each process has a share of. A gauge that all processes
report about the same thing has one value, see ``SHARED``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

Families = Callable[[], Iterable[Metric]]

# What becomes of the values of a gauge; the others are added up.
SHARED: dict[str, Callable[[float, float], float]] = {
    "process_start_time_seconds": min,
    "process_max_fds": max,
    "pkgrepo_certificate_expiry_timestamp_seconds": min,  # one worker may have the new certificate already
    "pkgrepo_upstream_up": min,
    "pkgrepo_file_bytes": max,
    "pkgrepo_database_free_bytes": min,
}
GROWING = frozenset({"counter", "histogram"})  # types of metrics that only grow

_Key = tuple[str, tuple[tuple[str, str], ...]]


@frozen(eq=False)
class AllMetrics(Collector):
    """Collects the families of all sources for one answer."""

    families: Sequence[Families]

    def collect(self) -> Iterator[Metric]:
        """The metric families, one after the other."""
        for each in self.families:
            yield from each()


def summed(texts: Iterable[bytes]) -> list[Metric]:
    """The sums of several expositions; one that cannot be read is an error of ours, and raises ValueError."""
    families: dict[str, Metric] = {}
    values: dict[str, dict[_Key, Sample]] = {}
    for text in texts:
        for found in text_string_to_metric_families(text.decode("utf-8")):
            family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
            kept = values.setdefault(found.name, {})
            combine = SHARED.get(family.name, float.__add__)
            for sample in found.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                before = kept.get(key)
                value = float(sample.value)
                kept[key] = sample._replace(value=value if before is None else combine(before.value, value))
    for name, family in families.items():
        family.samples = list(values[name].values())
    return list(families.values())


def growing(texts: Iterable[bytes]) -> bytes:
    """The sums of what only grows, as an exposition: what processes leave behind that have ended."""
    return exposition([each for each in summed(texts) if each.type in GROWING])


def exposition(families: Iterable[Metric]) -> bytes:
    """The text of some families."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AllMetrics([lambda: families]))
    return generate_latest(registry)
