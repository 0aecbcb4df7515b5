"""Container images in the readable layout: an OCI image layout for each, written from the catalog and restored from."""
