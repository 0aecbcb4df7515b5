"""The Helm format."""

from __future__ import annotations

from tests.support.charts import make_chart

from .case import OCTETS, Case

LOCK = """\
dependencies:
- name: {0}
  repository: https://charts.example/stable
  version: {1}
digest: sha256:00
generated: "2026-01-02T03:04:05Z"
"""

HELM = Case(
    format="helm",
    binding="{name}",
    put=lambda send, name, version: send("POST", "/api/charts", make_chart(name, version), kind=OCTETS),
    document="/index.yaml",
    listed='"charts/{name}-{version}.tgz"',
    file="/charts/{name}-{version}.tgz",
    beside=("/demo-1.1.0.tgz", "/charts/%64emo-1.1.0.tgz"),
    sent=lambda name, version: (f"{name}-{version}.tgz", make_chart(name, version), {}),
    lock=lambda name, version, _data: ("Chart.lock", LOCK.format(name, version)),
)
