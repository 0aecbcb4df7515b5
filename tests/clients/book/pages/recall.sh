#: settings
[advisories]
source = "$FOLDER/osv"
#: beside
#: here PASSWORD = $PASSWORD
#: here sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 = sha256:$(sha256sum left-pad.tgz | cut --characters 1-64)
create npm npm
create images docker
make_package tarball left-pad 1.3.1
pkgrepo upload main/npm left-pad-1.3.1.tgz
curl --output left-pad.tgz "$R/repositories/main/npm/left-pad/-/left-pad-1.3.1.tgz"
#: next 2
#: next 1
make_package wheel my-lib 2.0
create py python
pkgrepo upload main/py my_lib-2.0-py3-none-any.whl
make_package image app v1 layout
pkgrepo upload main/images layout --as team/app:v1
#: block
#: block
mkdir osv
cat >osv/MAL-2026-1234.json <<'END'
{"id": "MAL-2026-1234", "modified": "2026-01-01T00:00:00Z", "summary": "malware",
 "affected": [{"package": {"ecosystem": "npm", "name": "left-pad"}, "versions": ["1.3.1"]}]}
END
pkgrepo advisories refresh
#: block
grep left-pad report.md
