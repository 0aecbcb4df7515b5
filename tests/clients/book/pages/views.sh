#: clients npm-11 pip uv rattler
#: here npm ci = npm install left-pad
#: here python@2026-09-01T12:00Z = python@$NOW
#: here @2026-09-01 = @$NOW
#: here --at 2026-09-01 = --at $NOW
#: here at=2026-09-01 = at=$NOW
#: here cargo build = true
#: here conda%402026-09-01 = conda%40$NOW
#: here pip install = pip install --target here
create npm npm
create python python
create ruby ruby
create crates cargo
create conda conda
make_package conda demo 1.0
pkgrepo upload main/conda demo-1.0-py_0.conda
make_package tarball left-pad 1.0.0
make_package wheel demo 1.0
make_package gem demo 1.0.0
pkgrepo upload main/npm left-pad-1.0.0.tgz
pkgrepo upload main/python demo-1.0-py3-none-any.whl
pkgrepo upload main/ruby demo-1.0.0.gem
sleep 1
NOW=$(date --utc +%Y-%m-%dT%H:%M:%SZ)
export GEM_HOME=$PWD/gems GEM_PATH=$PWD/gems
#: next 5
#: block
#: block
