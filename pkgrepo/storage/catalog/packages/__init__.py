"""Queries and write commands for packages, versions, files, tags, events, tombstones and deployments."""
