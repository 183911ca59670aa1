"""The languages that prompts are written in, and how sources and settings name them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from tasks.foundation.tables.types import Language

LANGUAGES: dict[Language, str] = {"en": "English", "zh": "Chinese"}
"""The languages that prompts are written in."""

_SPELLINGS: dict[str, Language] = {
    **dict.fromkeys(("en", "eng", "english", "英语", "英文", "英語"), "en"),
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "chinese", "mandarin", "putonghua"), "zh"),
    **dict.fromkeys(("中文", "汉语", "漢語", "华语", "華語", "国语", "國語", "普通话", "普通話", "中国话"), "zh"),
}
_VARIANT = re.compile("^[简簡繁][体體]")

_NAMES: dict[str, str] = {
    **{"en": "English", "zh": "Chinese"},
    **{"am": "Amharic", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech"},
    **{"da": "Danish", "de": "German", "el": "Greek", "es": "Spanish", "et": "Estonian", "fa": "Persian"},
    **{"fi": "Finnish", "fr": "French", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian"},
    **{"hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "la": "Latin"},
    **{"lt": "Lithuanian", "lv": "Latvian", "mr": "Marathi", "ms": "Malay", "nl": "Dutch", "no": "Norwegian"},
    **{"pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovene"},
    **{"sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai"},
    **{"tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese"},
}


def language_named(value: Any) -> Language | None:
    """The language that a word or tag of a source or a setting names, in whatever case and form; None for any other.

    >>> [language_named(value) for value in ("EN", "en-US", "Simplified Chinese", "zh-Hans", "中文", "Deutsch")]
    ['en', 'en', 'zh', 'zh', 'zh', None]
    """
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", str(value)).casefold())
    named = [_SPELLINGS.get(_VARIANT.sub("", word)) for word in words]
    by_name = {language for word, language in zip(words, named, strict=True) if language and len(word) > 3}
    first = named[0] if named else None
    return first or (by_name.pop() if len(by_name) == 1 else None)


def name_of(language: str) -> str:
    """A language by its code in words; the code itself of a rare one."""
    return _NAMES.get(language, language)
