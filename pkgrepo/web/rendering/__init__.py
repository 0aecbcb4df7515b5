"""From templates and values to pages: the template engine, its filters, and the headers of pages."""
