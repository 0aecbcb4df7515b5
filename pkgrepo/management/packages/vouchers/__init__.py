"""Who vouches for the files of a version, as stored signatures and attestations say."""
