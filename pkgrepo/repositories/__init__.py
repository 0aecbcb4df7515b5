"""The shared verbs of every format: publish, fetch, remove, and what follows from them."""
