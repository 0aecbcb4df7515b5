"""Container images: manifests, linked blobs, signatures, trust, leases and garbage collection."""
