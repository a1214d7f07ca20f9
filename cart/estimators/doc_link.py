"""Where the documentation of an estimator is: its HTML, in a notebook, has a link there."""

import functools
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

_LABEL = "documentation"  # of the address among those of the project
_PACKAGES = ("cart", "forest", "importance")
_PAGE = "reference.html"


class DocLink:
    """Of estimators: their place in the reference, which scikit-learn's HTML links to."""

    def _get_doc_link(self) -> str:
        """Address; "" where there is none, or the class is a user's own."""
        kind = type(self)
        is_ours = kind.__module__.partition(".")[0] in _PACKAGES
        site = address_of_site() if is_ours else ""
        return f"{site}/{_PAGE}#cartwood.{kind.__name__}" if site else ""


@functools.cache
def address_of_site() -> str:
    """That of the project's metadata (`[project.urls]`), else the site that `make docs` built."""
    with suppress(PackageNotFoundError):
        for url in metadata("cartwood").get_all("Project-URL") or ():
            label, _, address = url.partition(",")
            if label.strip().lower() == _LABEL:
                return address.strip().rstrip("/")
    built = Path(__file__).resolve().parents[2] / "site"
    return built.as_uri() if (built / _PAGE).is_file() else ""
