"""The versions of scikit-learn that our trees were checked against, see `docs/compatibility.md`."""

import warnings

import sklearn

CHECKED = ("1.9.0", "1.9.1")


def warn_if_unchecked() -> None:
    """Warn if another version of scikit-learn is installed: its trees may differ from ours."""
    if sklearn.__version__ not in CHECKED:
        warnings.warn(
            f"Cartwood was not checked against scikit-learn {sklearn.__version__}: its trees may "
            f"differ from Cartwood's, which match those of {', '.join(CHECKED)}. Install one of "
            "these, or run `python -m benchmarks identity --quick` and see docs/compatibility.md.",
            stacklevel=3,
        )
