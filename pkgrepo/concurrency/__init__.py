"""
Waiting: threads, fair semaphore, single flight, bounded caches, time limits; services; the proxies that a request
passed.
"""
