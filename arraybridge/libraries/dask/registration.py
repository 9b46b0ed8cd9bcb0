"""Nothing: an installation of an earlier revision names this entry point (``dask.sizeof``)."""


def register(sizeof: object = None) -> None:
    """Do nothing."""
