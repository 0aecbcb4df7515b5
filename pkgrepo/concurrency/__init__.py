"""Waiting: a fair semaphore, single flight, time limits; services; the proxies that a request has passed."""
