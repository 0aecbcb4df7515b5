"""The readable layout: events of the catalog -> follower -> updater -> files and sidecars below the storage."""
