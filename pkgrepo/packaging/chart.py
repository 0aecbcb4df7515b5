"""The Helm chart, and the manifests for those who use no Helm, which are rendered from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pkgrepo.packaging.archives import Entry, entries_below, write_tar_gz
from pkgrepo.packaging.sources import ReleaseFailed, Sources, run

KUBERNETES = "1.31"  # the version whose manifests are rendered
FOLDER = "pkgrepo/packaging/chart"  # in the sources
POSTGRESQL: Sequence[str] = (
    "catalog=postgresql", "postgresql.host=postgresql", "postgresql.existingSecret=pkgrepo-database",
    "bucket.endpoint=http://minio:9000", "bucket.name=packages", "bucket.existingSecret=pkgrepo-bucket",
)  # fmt: skip
_RENDERED: dict[str, Sequence[str]] = {"kubernetes-sqlite.yaml": (), "kubernetes-postgresql.yaml": POSTGRESQL}


def pack(sources: Sources, out: Path) -> Path:
    """Write the chart with the version of the program, as ``helm package`` would. Returns its path."""
    entries = []
    for each in entries_below(sources.folder / FOLDER, "pkgrepo/"):
        if each.name == "pkgrepo/Chart.yaml":
            assert isinstance(each.data, Path)
            text, count = re.subn(
                r"(?m)^(version|appVersion): .*$", rf"\1: {sources.version}", each.data.read_text("utf-8")
            )
            if count != 2:
                raise ReleaseFailed("Chart.yaml has not version and appVersion")
            entries.append(Entry(each.name, each.mode, text.encode()))
        elif each.data is not None:  # helm packs files alone
            entries.append(each)
    target = out / f"pkgrepo-{sources.version}.tgz"
    write_tar_gz(target, entries, sources.epoch)
    return target


def render(helm: str, chart: Path, out: Path) -> None:
    """Check the chart, and write its manifests for both kinds of catalog."""
    for name, values in _RENDERED.items():
        settings = [word for each in values for word in ("--set", each)]
        run([helm, "lint", "--strict", chart, *settings])
        text = run([helm, "template", "pkgrepo", chart, "--kube-version", KUBERNETES, *settings])
        (out / name).write_text(text, "utf-8")
