"""One small module a provider; vendor exceptions become ours at this border."""

from __future__ import annotations

from tasks.foundation.llm.request import ModelSpec, Provider


def provider_for(spec: ModelSpec) -> Provider:
    """A new provider for the model's kind, endpoint and key; vendor libraries are imported only here.

    Raises ModelUnavailable when the key is not set or the weights are missing.
    """
    match spec.provider:
        case "openai":
            from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider

            return OpenAIProvider(spec)
        case "google":
            from tasks.foundation.llm.providers.google_genai import GoogleProvider

            return GoogleProvider(spec)
        case "embedded":
            from tasks.foundation.llm.providers.embedded import EmbeddedProvider

            return EmbeddedProvider()
        case "scripted":
            from tasks.foundation.llm.providers.scripted import ScriptedProvider

            return ScriptedProvider()
