"""Manifests as JSON: parsing of bytes to a document with its descriptors, without I/O."""
