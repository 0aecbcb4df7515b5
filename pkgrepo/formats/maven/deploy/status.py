"""Deployments as JSON: our own form, and the one that clients of the public portal expect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pkgrepo.model.deployments import Deployment, DeploymentState

from .problems import first_sentence


def status_record(deployment: Deployment) -> dict[str, Any]:
    """
    The status of a deployment; what was published is known once it is.

    The C{status} of one that has failed is the HTTP status that a client got who waited for it.
    """
    record: dict[str, Any] = {
        "deployment_id": deployment.uid,
        "name": deployment.name,
        "state": deployment.state.value,
        "publishing_type": publishing_type(deployment),
        "user": deployment.actor,
        "size": deployment.size,
        "created_at": _time(deployment.created_ms),
        "updated_at": _time(deployment.touched_ms),
        "errors": dict(deployment.errors),
    }
    if deployment.state is DeploymentState.FAILED:
        record["status"] = deployment.meta.get("status", 409)
    if deployment.state is DeploymentState.PUBLISHED:
        record |= {
            "components": deployment.meta.get("components", []),
            "component_count": deployment.meta.get("component_count", 0),
            "file_count": deployment.meta.get("file_count", 0),
        }
    return record


def portal_record(deployment: Deployment) -> dict[str, Any]:
    """The same in the form of the public portal's publisher API."""
    return {
        "deploymentId": deployment.uid,
        "deploymentName": deployment.name,
        "deploymentState": deployment.state.value,
        "purls": [
            f"pkg:maven/{each['group_id']}/{each['artifact_id']}@{each['version']}"
            for each in deployment.meta.get("components", ())
        ],
        "errors": dict(deployment.errors),
    }


def publishing_type(deployment: Deployment) -> str:
    """How it is published."""
    return "AUTOMATIC" if deployment.automatic else "USER_MANAGED"


def failure_text(deployment: Deployment) -> str:
    """All errors of a deployment, a line each."""
    lines = [f"{path}: {text}" if path else text for path, texts in deployment.errors.items() for text in texts]
    return "\n".join(lines) + "\n"


def failure_sentence(deployment: Deployment) -> str:
    """The first error of a deployment."""
    return first_sentence(deployment.errors) or "the deployment failed"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
