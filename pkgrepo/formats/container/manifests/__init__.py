"""Manifests: pushed under the push rules, read and deleted."""
