"""The program of a worker process, which a master starts; see ``pkgrepo.process.workers``."""
