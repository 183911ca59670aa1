"""What all stages of a process share: settings, models, the artifacts folder, the reply cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.own_models import all_models
from tasks.foundation.llm.request import ModelSpec
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import Similarity, similarity_of


@dataclass
class Workspace:
    """Opened once a run. `stage_of` maps each table to the stage that makes it, for messages. `remembered` is what the
    settings have on top of the profile, for later runs of the build; those of a `guest`, which is one target more on
    a benchmark that is there, do not count."""

    settings: Settings
    profile: str
    layout: Layout
    models: Mapping[str, ModelSpec]
    stage_of: Mapping[str, str] = field(default_factory=dict)
    remembered: tuple[str, ...] = ()
    guest: bool = False
    _encoder: Encoder | None = None
    _similarities: dict[Language, Similarity] = field(default_factory=dict)
    _cache: ReplyCache | None = None

    @staticmethod
    def open(profile: str, overrides: tuple[str, ...] = (), layout: Layout | None = None) -> Workspace:
        """Settings of the profile with overrides; ConfigError before anything else happens."""
        layout = layout or Layout.default()
        settings = load_settings(profile, overrides)
        return Workspace(settings, profile, layout, all_models(layout), remembered=overrides)

    @property
    def encoder(self) -> Encoder:
        """The sentence encoder of English texts, with its stored embeddings."""
        if self._encoder is None:
            found = self.similarity("en")
            assert isinstance(found, Encoder), found
            self._encoder = found
        return self._encoder

    def similarity(self, language: Language) -> Similarity:
        """What texts of a language are compared with, by the settings and the weights that are here."""
        if language == "en" and self._encoder is not None:
            return self._encoder
        if language not in self._similarities:
            cache = self.layout.cache / "embeddings"
            self._similarities[language] = similarity_of(language, self.settings, cache)
        return self._similarities[language]

    @property
    def similarities(self) -> dict[Language, Similarity]:
        """Those of all languages."""
        return {language: self.similarity(language) for language in LANGUAGES}

    @property
    def cache(self) -> ReplyCache:
        """The reply cache, opened on first use."""
        if self._cache is None:
            self._cache = ReplyCache(self.layout.cache / "replies.sqlite")
        return self._cache

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
            self._cache = None
