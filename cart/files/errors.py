"""What is raised where a saved model is not what was saved."""


class DamagedModelError(ValueError):
    """A model file or a pickled model is damaged, cut short or forged."""


def require(holds: bool, what: str) -> None:
    """Refuse a model unless something holds.

    Parameters
    ----------
    holds : bool
    what : str
        What does not hold, as a sentence without its end.

    Raises
    ------
    DamagedModelError
    """
    if not holds:
        raise DamagedModelError(f"The model is damaged: {what}. Take another copy of it.")
