"""The error for saved models that are not what was saved."""


class DamagedModelError(ValueError):
    """A model file or a pickled model is damaged, cut short or forged."""


def require(holds: bool, what: str) -> None:
    """Raise a DamagedModelError unless a condition holds.

    Parameters
    ----------
    holds : bool
    what : str
        What is wrong if it does not hold: a clause of the message, without a full stop.

    Raises
    ------
    DamagedModelError
    """
    if not holds:
        raise DamagedModelError(f"The model is damaged: {what}. Use another copy of it.")
