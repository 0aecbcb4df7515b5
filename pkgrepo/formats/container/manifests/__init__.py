"""Manifests in and out: read, pushed under the push rules, deleted."""
