"""Images in the readable layout: an OCI image layout each."""
