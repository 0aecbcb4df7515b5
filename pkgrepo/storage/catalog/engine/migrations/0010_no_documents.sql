-- Documents are spliced from their fragments when they are read; none is kept any more.
DROP TABLE document;
