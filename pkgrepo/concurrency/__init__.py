"""Waiting: a fair semaphore, calls that several callers share, periodic tasks; and the way of a request."""
