"""Maintenance: garbage collection, sweeping, verifying, reindexing, and the jobs that run them."""
