"""Kernels that came with a wheel: what they were compiled for, and whether they fit here."""

import json
import os
from contextlib import suppress

from cart.jit.folders import OF_THE_WHEEL
from cart.jit.source_digest import FITS

_FILE = "fits.json"


def write_fits(folder: str, levels: list[str]) -> None:
    """Record in a folder of kernels what they were compiled for.

    Parameters
    ----------
    folder : str
    levels : list of str
        Levels of CPUs.
    """
    with open(os.path.join(folder, _FILE), "w") as file:
        json.dump({**FITS, "CPUs": levels}, file, indent=1)


def in_words() -> str:
    """One line that says which kernels came with the package, and whether they are used."""
    fits = {}
    with suppress(OSError, ValueError), open(os.path.join(OF_THE_WHEEL.path, _FILE)) as file:
        fits = json.load(file)
    if not fits:
        return "no kernels came with this installation: they will be compiled when first needed"
    came = f"kernels came compiled for {' and '.join(fits['CPUs'])}"
    others = [
        f"{name} {fits[name]} (here {here})" for name, here in FITS.items() if fits[name] != here
    ]
    if others:
        return f"{came}, but for {', '.join(others)}: they will be compiled when first needed"
    return f"{came}, and match the installed packages"
