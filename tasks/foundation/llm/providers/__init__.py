"""The kinds of providers: each has one entry here and one module beside this one.

Nothing of a module is imported before a model of its kind is used: vendors' libraries take seconds.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

Structured = Literal["json_schema", "json_object", "prompt"]
"""How replies are held to a schema: by the endpoint, to any JSON object, or only in words."""


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """One kind of provider. Places of code are `module:name`, the module being one of this package."""

    name: str
    """What `provider` of an entry in configs/models.yaml says."""
    client: str
    """The class that answers calls (`Provider` in llm/request.py), made from a ModelSpec."""
    batches: str | None = None
    """The class that speaks its batch API (`BatchApi` in llm/batch), made from a ModelSpec; None: it has none."""
    check: str | None = None
    """A function from a ModelSpec to why it cannot be called (no weights, say), or None; None: its key is enough."""
    url: str | None = None
    """The vendor's own endpoint: used and priced where an entry names none. None: there is none, and no price list."""
    batch_share: float | None = None
    """What the vendor charges for a batched call at `url`, as a share of a live one; None: not published."""
    structured: tuple[Structured, ...] = ("json_schema", "json_object", "prompt")
    """The ways of holding replies to a schema that its client knows."""
    needs_key: bool = False
    """Whether an entry must name the environment variable of a key."""
    local: bool = False
    """Answers in this process: no endpoint and no key, and it proves the pipeline and nothing else."""
    runs_weights: bool = False
    """Whether a model's name is that of weights on this machine, which cost nothing to use."""

    def load(self, place: str) -> Any:
        """What stands at a place of code; imports its module."""
        module, _, name = place.partition(":")
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)


PROVIDERS: dict[str, ProviderKind] = {
    kind.name: kind
    for kind in (
        ProviderKind(
            "openai",
            client="openai_compatible:OpenAIProvider",
            batches="openai_compatible:OpenAIBatches",
            url="https://api.openai.com/v1",
            batch_share=0.5,
        ),
        ProviderKind(
            "google",
            client="google_genai:GoogleProvider",
            batches="google_genai:GeminiBatches",
            url="https://generativelanguage.googleapis.com",
            batch_share=0.5,
            needs_key=True,
        ),
        ProviderKind(
            "embedded",
            client="embedded:EmbeddedProvider",
            check="embedded:missing_weights",
            local=True,
            runs_weights=True,
        ),
        ProviderKind(
            "scripted",
            client="scripted:ScriptedProvider",
            check="scripted:missing_callable",
            local=True,
        ),
    )
}

LOCAL_PROVIDERS = frozenset(kind.name for kind in PROVIDERS.values() if kind.local)
