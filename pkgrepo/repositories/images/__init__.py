"""Write commands over container images, the trust in their manifests, and the quarantine of unsigned ones."""
