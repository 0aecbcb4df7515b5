"""Container images: manifests, linked blobs, signatures, trust, promises and garbage collection."""
