"""stub"""


def serve() -> None:
    """stub"""
