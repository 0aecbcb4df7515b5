"""Waiting: a fair semaphore, calls that several callers share, periodic tasks; services; and the way of a request."""
