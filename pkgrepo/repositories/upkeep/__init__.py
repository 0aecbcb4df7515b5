"""Maintenance of storages and catalog: garbage collection, sweep of leftovers, verify, reindex, and their jobs."""
