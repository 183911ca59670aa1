"""The server of the test run, for the commands that are run here."""

from tests.flow.conftest import prefect_server

__all__ = ["prefect_server"]
