"""Waiting: a fair semaphore, calls that several callers share, and periodic tasks. Knows nothing of packages."""
