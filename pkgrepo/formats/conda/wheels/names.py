"""
Names of conda packages for the names of Python projects, where the two differ.

Most conda packages are called like their project, in lower case. The table has projects that are known under another
name in the channels that most people use beside theirs, so that dependencies on them are found there.
"""

from __future__ import annotations

import re
from typing import Final

_SEPARATORS: Final = re.compile(r"[-_.]+")

_OTHER_NAMES: Final = {
    "backports-functools-lru-cache": "backports.functools_lru_cache",
    "backports-tarfile": "backports.tarfile",
    "backports-zoneinfo": "backports.zoneinfo",
    "blosc": "python-blosc",
    "build": "python-build",
    "cmake": "cmake-python",
    "duckdb": "python-duckdb",
    "et-xmlfile": "et_xmlfile",
    "faiss-cpu": "faiss",
    "fastjsonschema": "python-fastjsonschema",
    "flatbuffers": "python-flatbuffers",
    "graphviz": "python-graphviz",
    "jaraco-classes": "jaraco.classes",
    "jaraco-collections": "jaraco.collections",
    "jaraco-context": "jaraco.context",
    "jaraco-functools": "jaraco.functools",
    "jaraco-text": "jaraco.text",
    "jupyter-client": "jupyter_client",
    "jupyter-console": "jupyter_console",
    "jupyter-core": "jupyter_core",
    "jupyter-events": "jupyter_events",
    "jupyter-server": "jupyter_server",
    "jupyter-server-terminals": "jupyter_server_terminals",
    "jupyterlab-pygments": "jupyterlab_pygments",
    "jupyterlab-server": "jupyterlab_server",
    "jupyterlab-widgets": "jupyterlab_widgets",
    "keyrings-alt": "keyrings.alt",
    "kubernetes": "python-kubernetes",
    "lmdb": "python-lmdb",
    "matplotlib": "matplotlib-base",
    "msgpack": "msgpack-python",
    "opencv-python": "py-opencv",
    "opencv-python-headless": "py-opencv",
    "prometheus-client": "prometheus_client",
    "pure-eval": "pure_eval",
    "pyqt5": "pyqt",
    "ruamel-yaml": "ruamel.yaml",
    "ruamel-yaml-clib": "ruamel.yaml.clib",
    "stack-data": "stack_data",
    "tables": "pytables",
    "torch": "pytorch",
    "typing-extensions": "typing_extensions",
    "tzdata": "python-tzdata",
    "xxhash": "python-xxhash",
    "zope-event": "zope.event",
    "zope-interface": "zope.interface",
}


def conda_name(project: str) -> str:
    """The name of the conda package for a Python project, whose name may be in any spelling."""
    normal = _SEPARATORS.sub("-", project).lower()
    return _OTHER_NAMES.get(normal, normal)
