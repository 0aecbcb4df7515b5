"""Artifacts of upstreams: what upstreams are asked, and what their metadata and files become."""
