"""Container images: manifests, the blobs that an image may serve, signatures and trust."""
