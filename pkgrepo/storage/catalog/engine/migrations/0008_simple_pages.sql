-- Pages of Python projects are joined from their fragments when they are read, and not kept any more.
DELETE FROM document WHERE kind IN ('simple.json', 'simple.html');
