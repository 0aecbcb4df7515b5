#: here TOKEN = $TOKEN
TOKEN=$(pkgrepo token create raw --repository 'main/*=read,write')
echo tool >tool.bin
#: block
test -f repositories/main/files/tool/1.0/tool.bin
