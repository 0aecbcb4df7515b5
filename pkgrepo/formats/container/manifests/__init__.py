"""Requests that push, read and delete manifests."""
