#: beside bucket
#: here s3://twins/python --endpoint https://s3.example = s3://$BUCKET/python --endpoint $ENDPOINT
#: here /srv/twins = $PWD/twins
#: here pkgrepo export main/python s3: = pkgrepo export --no-addresses main/python s3:
#: here pkgrepo export main/java $PWD/twins/java --watch = for_a_moment pkgrepo export main/java $PWD/twins/java --watch
create python python
create npm npm
create java maven
make_package wheel demo 1.0
pkgrepo upload main/python demo-1.0-py3-none-any.whl
#: block
admin "$R/api/system/twin-key" | jq -r .key >twin-key.pem
#: block
