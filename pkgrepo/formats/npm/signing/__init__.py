"""Signatures of the registry over name, version and integrity of each tarball; the key lies in the catalog."""
