"""Which language a text is in: first by its script, then, of Latin letters, by a small identifier of 139 languages.

What cannot be told (a greeting, a name) counts as English where it is written in Latin letters: another language is
named only on good evidence, since a row in one that has no prompts is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Ranges of Han characters, for a regular expression's character class."""
LOOKED_AT = 1500
"""Characters of a text that decide."""
EVIDENCE = 100
"""How many times likelier than English another language must be. Of 2,041 English utterances none comes to 11, of 7,500
rows of up to eight English nouns one of three words to 83; of 60 sentences in other languages none is below 106."""
FEWEST_LETTERS = 15
"""A shorter text says too little of its language."""
KANA_SHARE = 0.1
"""Share of kana from which a text with Han characters is Japanese; Chinese ones use a single の as an ornament."""
NAMED_KANA_SHARE = 0.4
"""The same for a text with characters that Japanese does not write: its kana are names."""
NAMES_SHARE = 0.25
"""How much is said in another script, against words in Latin letters, where these may be but names."""
SMALL_WORDS_SHARE = 0.12
"""Share of small words that English has at least."""


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


_SMALL_WORDS = _words(
    "the and to you that with for her his she they this have has are from your what my our their there would could "
    "about who how when where which just don't i'm it's that's can't you're"
)
"""Frequent in English and in no other language: where there are many, no identifier is asked."""
_NOT_TOLD = _words("zh zxx pcm ext")
"""What the identifier calls texts in Latin letters that are in no language, or in one that it takes English for."""
_LETTERS_A_WORD = {"HAN": 1.6, "KANA": 2.5, "HANGUL": 2.5, "THAI": 4.0, "LAO": 4.0, "KHMER": 4.0, "MYANMAR": 4.0}
"""Letters that say as much as an English word of five does."""
_OF_SCRIPT = {"HANGUL": "ko", "THAI": "th", "ETHIOPIC": "am", "GREEK": "el", "HEBREW": "he", "TAMIL": "ta"}
_SHARED_SCRIPTS = _words("CYRILLIC ARABIC DEVANAGARI BENGALI")
"""Those of which the identifier says the language; any other is called by its own name, which is a language's, too."""

_ONLY_CHINESE = frozenset("们這这吗嗎呢吧啊么麼没沒她您哪很说还给让把从欢爱买卖谢谁个过时对发见长门间东车")

_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|《[^》]*》|«[^»]*»|\([^)]*\)|（[^）]*）")


def language_of(text: str) -> str | None:
    """The code (ISO 639; for a rare script its name) of the language that a text is in; None for one without a letter
    (empty, digits, emoji).

    Of a mixed text the language is that of most of its words, quotations and names in Latin letters aside.

    >>> [language_of(text) for text in ("I told her “你好”.", "他用iPhone办公", "그는 의사다", "Er kocht gerne Suppe")]
    ['en', 'zh', 'ko', 'de']
    """
    text = text[:LOOKED_AT]
    if text.isascii():
        return _of_latin(text) if any(map(str.isalpha, text)) else None
    text = unicodedata.normalize("NFKC", text)
    words = _words_by_script(take_out_quotations(text)) or _words_by_script(text)
    if not words:
        return None
    script = max(words, key=words.__getitem__)
    if script == "LATIN":
        other = max(words, key=lambda each: words[each] if each != "LATIN" else 0.0)
        if words[other] < NAMES_SHARE * words["LATIN"] or other == "LATIN" or _is_in_english(text):
            return _of_latin(text)
        script = other
    return _of_han(text) if script in ("HAN", "KANA") else _of_script(text, script)


def take_out_quotations(text: str) -> str:
    """`text` without what stands in quotation marks or brackets."""
    return _QUOTED.sub(" ", text)


def _words_by_script(text: str) -> dict[str, float]:
    """How much is said in each script, in words of English length."""
    letters: Counter[str] = Counter()
    for character, times in Counter(text).items():
        letters[_script_of(character)] += times
    del letters[""]
    return {script: count / _LETTERS_A_WORD.get(script, 5.0) for script, count in letters.items()}


@cache
def _script_of(character: str) -> str:
    """The script of a letter, as Unicode names it; empty for what is no letter of a script."""
    if not unicodedata.category(character).startswith("L") and character != "〇":
        return ""
    first = unicodedata.name(character, "").partition(" ")[0]
    if first in ("CJK", "IDEOGRAPHIC", "BOPOMOFO"):
        return "HAN"
    if first.startswith(("HIRAGANA", "KATAKANA")):
        return "KANA"
    return "" if first == "MODIFIER" else first


def _of_han(text: str) -> str:
    scripts = Counter(_script_of(character) for character in take_out_quotations(text) if character != "の")
    share = scripts["KANA"] / max(1, scripts["HAN"] + scripts["KANA"])
    return "ja" if share > (NAMED_KANA_SHARE if _ONLY_CHINESE & set(text) else KANA_SHARE) else "zh"


def _of_script(text: str, script: str) -> str:
    """A language that is written neither in Latin letters nor with Han characters."""
    if script not in _SHARED_SCRIPTS:
        return _OF_SCRIPT.get(script, script.lower())
    own = "".join(character if _script_of(character) in (script, "") else " " for character in text)
    return str(_identifier().classify(own)[0])


def _of_latin(text: str) -> str:
    if sum(map(str.isalpha, text)) < FEWEST_LETTERS or _is_in_english(text):
        return "en"
    likely = {code: float(share) for code, share in _identifier().rank(text)}
    found = max((code for code in likely if code not in _NOT_TOLD), key=likely.__getitem__)
    return found if likely[found] > EVIDENCE * likely["en"] else "en"


def _is_in_english(text: str) -> bool:
    """Whether a text has as many of the small words of English as English has. False tells nothing of a short one."""
    words = _WORD.findall(text.casefold())
    return sum(word in _SMALL_WORDS for word in words) > SMALL_WORDS_SHARE * len(words)


@cache
def _identifier() -> LanguageIdentifier:
    """Its model comes with the package: 2 MB that are read when a text is first asked about."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
