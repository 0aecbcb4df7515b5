"""What the readable layout shows: events of the catalog -> follower -> updater -> writers -> files and sidecars."""
