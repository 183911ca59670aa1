"""Rows of local files (texts, plain or packed, tables, databases) and of hub datasets, one at a time.

A file that cannot be used as a whole raises SourceError: absent, empty, cut short, not UTF-8, without a
column that is needed, or with a filter that selects nothing. A bad row is yielded with its `problem` and
stops nothing. Nothing is read before the first row is asked for, nor after the last one that is, and a file
is never held whole unless it is one JSON array.
"""

from __future__ import annotations

from tasks.foundation.sources.files import find_files
from tasks.foundation.sources.open import open_source
from tasks.foundation.sources.rows import BadRow, Problem, SourceRejects, SourceRow, SourceTally, Unwanted

__all__ = [
    "BadRow",
    "Problem",
    "SourceRejects",
    "SourceRow",
    "SourceTally",
    "Unwanted",
    "find_files",
    "open_source",
]
