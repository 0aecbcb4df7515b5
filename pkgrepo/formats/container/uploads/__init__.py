"""Blobs in: one request or several, resumed on any worker, or mounted from another image."""
