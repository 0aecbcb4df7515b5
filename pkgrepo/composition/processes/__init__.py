"""Several processes of a server: nodes, what one of them does for all, what they tell each other, and children."""
