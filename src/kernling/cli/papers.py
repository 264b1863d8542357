def papers() -> None:
    """Soon."""


def reproduce() -> None:
    """Soon."""
