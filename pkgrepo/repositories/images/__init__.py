"""Container images: write commands over blobs, manifests and tags, the trust from signatures, and the quarantine."""
