"""Why a repository serves what it serves: the steps of the resolver, as records and sentences."""
