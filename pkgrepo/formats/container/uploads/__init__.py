"""Uploads of blobs in one or several requests, which any worker can resume; and mounts from other images."""
