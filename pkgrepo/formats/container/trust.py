"""Content trust: which manifests readers may see, by the signatures that came for them."""
