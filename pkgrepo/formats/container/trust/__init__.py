"""Content trust: trusted keys and stored signatures decide which manifests readers may see."""
