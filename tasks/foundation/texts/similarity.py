"""What texts of a language are compared with; the one place where that is chosen.

An encoder is used for the languages it was trained on and for no other: MiniLM, the papers' encoder, knows English
only, and gives Chinese texts vectors that mean nothing. Where no encoder knows the language, or its weights are not
here, texts are compared by their characters (MinHash); so are those that are in another language than is said of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasks.foundation.errors import ConfigError
from tasks.foundation.settings import Settings
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.encoding.network import Precision
from tasks.foundation.texts.languages import LANGUAGES, language_of
from tasks.foundation.weights import missing, weights_of

BY_CHARACTERS = "minhash"


@dataclass(frozen=True, slots=True)
class ByCharacters:
    """Texts have in common what sequences of characters they share; `why` says why no encoder is used."""

    language: Language
    why: str

    @property
    def fingerprint(self) -> str:
        return BY_CHARACTERS

    @property
    def told(self) -> str:
        return f"texts are compared by their characters (MinHash): {self.why}"


Similarity = Encoder | ByCharacters


def similarity_of(language: Language, settings: Settings, cache: Path | None = None) -> Similarity:
    """The encoder that the settings name for a language, or its characters.

    English is never compared by characters: without its weights, the first use of the encoder raises
    ModelUnavailable. ConfigError for an encoder of the catalogue that does not know the language.
    """
    section = settings.encoder
    name = section.of(language)
    if name is None:
        return ByCharacters(language, f"encoder.{language} is null")
    folder = section.folder(name)
    if folder is None:
        _check_knows(name, language)
    problem = missing(name) if folder is None else _missing(folder)
    if problem and language != "en":
        return ByCharacters(language, problem)
    precision: Precision = section.precision
    return Encoder(name, cache, precision, threads=section.threads, folder=folder)


def readable(similarity: Similarity, text: str, language: Language) -> bool:
    """Whether a text, said to be in a language, may be held against others in this way: by an encoder only if it is
    in it. Vectors of texts that an encoder cannot read are alike, whatever they say."""
    return isinstance(similarity, ByCharacters) or language_of(text) == language


def recorded(similarity: Similarity) -> dict[str, str]:
    """What a commit says of it."""
    if isinstance(similarity, ByCharacters):
        return {"method": BY_CHARACTERS, "why": similarity.why}
    fingerprint = similarity.fingerprint[:16]
    return {"encoder": similarity.name, "precision": similarity.precision, "fingerprint": fingerprint}


def _check_knows(name: str, language: Language) -> None:
    weights = weights_of(name)
    if weights.kind != "encoder" or language not in weights.languages:
        raise ConfigError(
            f"Expected an encoder that knows {LANGUAGES[language]} in encoder.{language}, found {name!r}, "
            f"which {_knows(weights.languages)}. `colloquy models list` shows what there is; null compares texts by "
            "their characters."
        )


def _knows(languages: tuple[str, ...]) -> str:
    known = [name for language, name in LANGUAGES.items() if language in languages]
    return f"knows {' and '.join(known)} only" if known else "is no sentence encoder"


def _missing(folder: Path) -> str | None:
    return None if (folder / "config.json").is_file() else f"The encoder's folder {folder} holds no config.json."
