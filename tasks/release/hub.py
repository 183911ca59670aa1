"""A release sent to a dataset hub."""

from __future__ import annotations

from pathlib import Path

import httpx2
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

from tasks.foundation.errors import StoreError


def push_release(folder: Path, repository: str, *, private: bool = True) -> str:
    """Send the files of a release to the dataset `repository` (OWNER/NAME), made if it is not there; returns the
    commit's address.

    Server and token are those of the hub library's own settings (HF_ENDPOINT, HF_TOKEN). Raises StoreError, with the
    hub's reason and never with the token.
    """
    hub = HfApi()
    try:
        hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        sent = hub.upload_folder(
            repo_id=repository, repo_type="dataset", folder_path=folder, commit_message=f"Release of {folder.name}"
        )
    except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError, httpx2.HTTPError, OSError) as error:
        raise StoreError(
            f"{folder} could not be sent to {repository!r} on {hub.endpoint}: {_reason(error)}. Check the name, and "
            "HF_TOKEN, which needs the right to write."
        ) from None
    return str(sent.commit_url)


def _reason(error: Exception) -> str:
    """What went wrong, in one line without headers."""
    answer = getattr(error, "response", None)
    status = f"HTTP {answer.status_code}" if answer is not None else type(error).__name__
    said = getattr(error, "server_message", None)
    return f"{status} ({said})" if said else status
