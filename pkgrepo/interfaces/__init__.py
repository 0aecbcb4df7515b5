"""
The interfaces between the packages of the program.

Every implementation is checked with verifyObject of zope.interface and passes the contract suite of its interface in
``tests/contracts``. As zope.interface requires, methods are declared without ``self``.
"""

from .access import IAuthenticator, IAuthorizer
from .blobs import IBlob, IBlobAddresses, IBlobStore, IBlobUpload, IGrowingFiles
from .catalog import NOT_NOW, ICatalog, NotNow, Reader, Row, Transaction, Value
from .upstreams import IUpstreamResponse

__all__ = [
    "NOT_NOW",
    "IAuthenticator",
    "IAuthorizer",
    "IBlob",
    "IBlobAddresses",
    "IBlobStore",
    "IBlobUpload",
    "ICatalog",
    "IGrowingFiles",
    "IUpstreamResponse",
    "NotNow",
    "Reader",
    "Row",
    "Transaction",
    "Value",
]
