"""stub"""


def sql() -> None:
    """stub"""
