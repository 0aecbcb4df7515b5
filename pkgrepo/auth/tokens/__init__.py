"""Access tokens and the short-lived signed ones: their text, what each caps, and when it was used."""
