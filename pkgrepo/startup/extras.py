"""The extras of the distribution that a server needs; ``bin/serve`` installs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from pkgrepo.composition.databases import reading
from pkgrepo.config import Config
from pkgrepo.model import Storage
from pkgrepo.storage.catalog.server.storages import list_storages


def missing_extras(config: Config) -> Iterator[str]:
    """
    Iterate over the extras that the configuration and the storages in its catalog need, and that are not installed.

    Without the library of its database a catalog is not read.

    :raises CatalogUnusable: the catalog cannot be read
    """
    if config.traces.endpoint and not _has_traces():
        yield "traces"
    if config.database_path is None and find_spec("psycopg") is None:
        yield "postgresql"
    elif find_spec("botocore") is not None:
        return
    elif config.backup.destination.startswith("s3://") or any(each.type == "S3" for each in config.bootstrap.storages):
        yield "s3"
    else:
        with reading(config) as catalog:
            if catalog is not None and any(map(_is_in_bucket, list_storages(catalog))):
                yield "s3"


def _has_traces() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # of a package around it
        return False


def _is_in_bucket(storage: Storage) -> bool:
    """Whether it is in a bucket, or moves out of one."""
    return not storage.is_local or (storage.before is not None and not storage.before.is_local)
