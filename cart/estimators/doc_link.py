"""The address of an estimator's documentation, which its HTML in a notebook links to."""

import functools
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

_LABEL = "documentation"  # the address's label among the project's URLs
_PACKAGES = ("cart", "forest", "importance")
_PAGE = "reference.html"


class DocLink:
    """Mixin that gives estimators their place in the reference, for scikit-learn's HTML."""

    def _get_doc_link(self) -> str:
        """The address; "" if there is none, or if the class is a user's own subclass."""
        kind = type(self)
        is_ours = kind.__module__.partition(".")[0] in _PACKAGES
        site = address_of_site() if is_ours else ""
        return f"{site}/{_PAGE}#cartwood.{kind.__name__}" if site else ""


@functools.cache
def address_of_site() -> str:
    """Address of the documentation in `[project.urls]`, else of the site that `make docs` built."""
    with suppress(PackageNotFoundError):
        for url in metadata("cartwood").get_all("Project-URL") or ():
            label, _, address = url.partition(",")
            if label.strip().lower() == _LABEL:
                return address.strip().rstrip("/")
    built = Path(__file__).resolve().parents[2] / "site"
    return built.as_uri() if (built / _PAGE).is_file() else ""
