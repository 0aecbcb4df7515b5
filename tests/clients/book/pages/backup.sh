#: here /mnt/backup/pkgrepo = $PWD/backup
#: here /srv/pkgrepo/data = $PWD/restored
#: here /safe/credentials.key = $DATA/credentials.key
pkgrepo --set "data.dir=$DATA" backup backup
#: block
test -f restored/pkgrepo.db
