"""
The interfaces between the packages of the program.

Every implementation is checked with ``verifyObject`` and passes the contract suite of its interface in
``tests/contracts``. As zope.interface requires, methods are declared without ``self``.
"""

from .access import IAuthenticator, IAuthorizer
from .blobs import IBlob, IBlobAddresses, IBlobStore, IBlobUpload, IGrowingFiles
from .catalog import NOT_NOW, ICatalog, NotNow, Reader, Row, Transaction, Value
from .formats import (
    IAddressedFormat,
    IAdvisedFormat,
    IBackgroundFormat,
    ICachingFormat,
    ICompactedFormat,
    ICompanionFormat,
    IConfiguredFormat,
    IContainingFormat,
    IExplainingFormat,
    IFormat,
    IImageFormat,
    IIndexedFormat,
    IPathFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableFormat,
    IRestorableListsFormat,
    IRootFormat,
    ISplicedFormat,
    IWorkingFormat,
)
from .upstreams import IUpstreamResponse

__all__ = [
    "NOT_NOW",
    "IAddressedFormat",
    "IAdvisedFormat",
    "IAuthenticator",
    "IAuthorizer",
    "IBackgroundFormat",
    "IBlob",
    "IBlobAddresses",
    "IBlobStore",
    "IBlobUpload",
    "ICachingFormat",
    "ICatalog",
    "ICompactedFormat",
    "ICompanionFormat",
    "IConfiguredFormat",
    "IContainingFormat",
    "IExplainingFormat",
    "IFormat",
    "IGrowingFiles",
    "IImageFormat",
    "IIndexedFormat",
    "IPathFormat",
    "IProbedFormat",
    "IProxiedFormat",
    "IRestorableFormat",
    "IRestorableListsFormat",
    "IRootFormat",
    "ISplicedFormat",
    "IUpstreamResponse",
    "IWorkingFormat",
    "NotNow",
    "Reader",
    "Row",
    "Transaction",
    "Value",
]
