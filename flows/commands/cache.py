"""stub"""

import typer

app = typer.Typer(help="stub")


@app.command()
def x() -> None:
    """stub"""
