"""Access tokens and bearer tokens: their text, their limits, and when they were used."""
