"""Digest of the sources that a kernel is compiled from: its module and all of ours it imports.

kernel's module --> modules of what it calls --> modules of what those call ...
(an arrow is an import; editing any of these files changes the digest)
"""

import functools
import hashlib
import os
import re
import sys

import llvmlite
import numba
import numpy as np

from cart.jit import SOURCES_READ_SINCE
from cart.jit.folders import warn_not_kept

_OURS = ("cart", "forest", "importance")
# Matches imports at the top level. Parsing all sources takes half a second, this a millisecond.
_IMPORT = re.compile(rb"\nfrom +([\w.]+) +import *(\([^)]*\)|.*)|\nimport +(.*)")
_COMMENT = re.compile(rb"#.*")
_OPTIONS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
# What else the code depends on, besides the CPU, which the key has from numba's code generator:
# Python's minor version decides how compiled code calls it, NumPy's which of numba's functions are
# compiled.
FITS = {
    "Python": sys.implementation.cache_tag,
    "numba": numba.__version__,
    "llvmlite": llvmlite.__version__,
    "NumPy": ".".join(np.__version__.split(".")[:2]),
}
_VERSIONS = repr([FITS, *(getattr(numba.config, option, None) for option in _OPTIONS)])


@functools.cache
def digest_of(module):
    """Digest of the sources of an imported module and of all that it imports, transitively, from
    its own package and ours.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    str or None
        None if a source cannot be read, or may have changed since it was imported.
    """
    packages = {*_OURS, module.partition(".")[0]}
    sources, to_read = {}, [module]
    while to_read:
        name = to_read.pop()
        if name in sources or name not in sys.modules or name.partition(".")[0] not in packages:
            continue
        source = _read(name)
        if source is None:
            return None
        sources[name], imported = source
        to_read += imported
    digest = hashlib.sha256(_VERSIONS.encode())
    for name in sorted(sources):
        digest.update(name.encode() + sources[name])
    return digest.hexdigest()


def imported_names(source):
    """Yield the dotted names that a source (bytes) imports at its top level: modules, and names
    from them."""
    for origin, names, modules in _IMPORT.findall(b"\n" + source):
        if origin:
            yield origin.decode()
        for words in map(bytes.split, _COMMENT.sub(b"", names or modules).strip(b"()").split(b",")):
            if words:
                yield (origin + b"." + words[0] if origin else words[0]).decode()


@functools.cache
def _read(module):
    """Digest of a module's source and the names that it imports; None if this is uncertain."""
    path = getattr(sys.modules[module], "__file__", None) or ""
    try:
        with open(path if path.endswith(".py") else "", "rb") as file:
            source, status = file.read(), os.fstat(file.fileno())
    except OSError:
        warn_not_kept(f"the source of {module} cannot be read")
        return None
    # st_ctime is the time of the last change on POSIX, but that of creation on Windows.
    changed = status.st_ctime if os.name == "posix" else status.st_mtime
    if changed > SOURCES_READ_SINCE:
        return None
    return hashlib.sha256(source).digest(), [*imported_names(source)]
