"""Content trust: keys and signatures -> which manifests readers may see."""
