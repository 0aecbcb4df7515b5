"""ManifestRequests as JSON: bytes -> parsed document with its descriptors; pure."""
