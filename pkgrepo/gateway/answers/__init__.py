"""What is answered: stored files, rendered documents, cached answers, and refusals with their statuses."""
