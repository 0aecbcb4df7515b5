"""Requests that read and delete the blobs of an image."""
