"""Uploads of blobs: in one request or several, resumed by any worker, or mounted from another image."""
