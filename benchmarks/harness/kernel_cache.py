"""Where compiled kernels are kept: a folder named by a digest of the sources.

numba's disk cache does not see callees, so after an edit of one module it would go on running
old code. A new digest is a new folder.
"""

import hashlib
import os
from pathlib import Path

PACKAGES = ("cart", "forest", "importance")


def use_digest_cache():
    """Set NUMBA_CACHE_DIR, unless it is set; call it before numba is imported."""
    os.environ.setdefault(
        "NUMBA_CACHE_DIR", str(digest_folder(Path(__file__).resolve().parents[2]))
    )


def digest_folder(root):
    """The folder of a checkout's kernels."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for source in sorted((root / package).rglob("*.py")):
            digest.update(source.relative_to(root).as_posix().encode() + source.read_bytes())
    return root / ".numba_cache" / digest.hexdigest()[:12]
