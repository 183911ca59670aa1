"""stub"""


def check() -> None:
    """stub"""
