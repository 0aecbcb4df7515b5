"""Garbage collection of a storage as a background job, and the state of jobs."""
