"""What all stages of a process share: settings, models, the artifacts folder, the reply cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.foundation.encoder import Encoder
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.own_models import all_models
from tasks.foundation.llm.request import ModelSpec
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.store.layout import Layout


@dataclass
class Workspace:
    """Opened once a run. `stage_of` maps each table to the stage that makes it, for messages."""

    settings: Settings
    profile: str
    layout: Layout
    models: Mapping[str, ModelSpec]
    stage_of: Mapping[str, str] = field(default_factory=dict)
    _encoder: Encoder | None = None
    _cache: ReplyCache | None = None

    @staticmethod
    def open(profile: str, overrides: tuple[str, ...] = (), layout: Layout | None = None) -> Workspace:
        """Settings of the profile with overrides; ConfigError before anything else happens."""
        layout = layout or Layout.default()
        return Workspace(load_settings(profile, overrides), profile, layout, all_models(layout))

    @property
    def encoder(self) -> Encoder:
        """The sentence encoder of the settings, with its stored embeddings."""
        if self._encoder is None:
            section = self.settings.encoder
            self._encoder = Encoder(
                section.name,
                self.layout.cache / "embeddings",
                batch_size=section.batch_size,
                threads=section.threads,
            )
        return self._encoder

    @property
    def cache(self) -> ReplyCache:
        """The reply cache, opened on first use."""
        if self._cache is None:
            self.layout.cache.mkdir(parents=True, exist_ok=True)
            self._cache = ReplyCache(self.layout.cache / "replies.sqlite")
        return self._cache

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
            self._cache = None
