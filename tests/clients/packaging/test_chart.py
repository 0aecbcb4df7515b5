"""The Helm chart, as Helm itself checks and renders it: pods, their settings and what selects them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pkgrepo.config import Config, read_config
from pkgrepo.packaging.chart import FOLDER, KUBERNETES, POSTGRESQL
from tests.support.client_programs import CLIENTS, absent

ROOT = Path(__file__).parents[3]


def render(*values: str) -> list[dict[str, Any]]:
    helm = CLIENTS / "helm" / "bin" / "helm"
    if not helm.exists():
        absent("helm is not installed (bin/test installs it)")
    settings = [word for each in values for word in ("--set", each)]
    subprocess.run([helm, "lint", "--strict", "--quiet", ROOT / FOLDER, *settings], check=True)
    command = [helm, "template", "pkgrepo", ROOT / FOLDER, "--kube-version", KUBERNETES, *settings]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [each for each in yaml.safe_load_all(rendered) if each]


def settings_in(documents: list[dict[str, Any]], folder: Path) -> Config:
    (found,) = (each for each in documents if each["kind"] == "ConfigMap")
    (folder / "pkgrepo.toml").write_text(found["data"]["pkgrepo.toml"])
    return read_config(folder / "pkgrepo.toml", environ={})


def check_pods(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The specification of the pods, which the service, the budget and the policy select."""
    (workload,) = (each for each in documents if each["kind"] in ("StatefulSet", "Deployment"))
    assert workload["kind"] == kind
    template = workload["spec"]["template"]
    selected = workload["spec"]["selector"]["matchLabels"]
    assert selected.items() <= template["metadata"]["labels"].items()
    by_kind = {each["kind"]: each for each in documents}
    assert by_kind["Service"]["spec"]["selector"] == selected
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == selected
    assert by_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == selected
    pod: dict[str, Any] = template["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounted = {each["name"] for each in container["volumeMounts"]}
    claimed = {each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", [])}
    assert mounted == {each["name"] for each in pod["volumes"]} | claimed
    return pod


def test_the_chart_with_sqlite(tmp_path: Path) -> None:
    documents = render("publicUrl=https://packages.example", "ingress.enabled=true", "ingress.host=packages.example")
    check_pods(documents, "StatefulSet")
    assert "Ingress" in {each["kind"] for each in documents}
    config = settings_in(documents, tmp_path)
    assert config.data.dir == Path("/var/lib/pkgrepo")
    assert config.database_path == Path("/var/lib/pkgrepo/pkgrepo.db")
    assert config.server.public_url == "https://packages.example"


def test_the_chart_with_postgresql_and_a_bucket(tmp_path: Path) -> None:
    documents = render(*POSTGRESQL, "replicas=3")
    pod = check_pods(documents, "Deployment")
    config = settings_in(documents, tmp_path)
    assert config.database_path is None
    (storage,) = config.bootstrap.storages
    assert (storage.name, storage.type) == ("main", "S3")
    assert storage.settings["bucket"] == "packages"
    names = {each["name"] for each in pod["containers"][0]["env"]}
    assert {"PKGREPO_DATABASE__PASSWORD_FILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= names


def test_the_chart_refuses_a_database_without_its_address_and_unknown_values() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        render("catalog=postgresql")
    with pytest.raises(subprocess.CalledProcessError):
        render("replicsa=3")
