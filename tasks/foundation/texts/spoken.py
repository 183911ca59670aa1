"""What a text must not be or have in it that a model writes as a person: an utterance of a dialogue, a turn of a talk,
a user's message. Pure; in English and Chinese.

* `stage_direction`  what somebody does instead of what is said: *sighs*, (laughs), 【叹气】
* `name_prefix`      a speaker's name before the text
* `name_inside`      a speaker's name before words within the text: it goes on in another's name
* `wrong_language`   another language than asked for; foreign names, words and quotations aside
* `prompt_echo`      a tag or a sentence of the prompt, or a goal recited word for word
* `refusal`          what models say when they will not write a text
* `ai_voice`         speaks of itself as a model
* `repeat`           says what was said before
* `empty`            has no words

The first two can be taken out without inventing anything (`mend_text`); what else is wrong, `find_guards` only names.

>>> find_guards("*sighs* As an AI, I cannot feel cold.", Voice("en"))
('stage_direction', 'ai_voice')
>>> find_guards("As an AI researcher I *never* said (2) that.", Voice("en"))
()
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, get_args

from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import HAN, language_of, take_out_quotations

Guard = Literal[
    "stage_direction",
    "name_prefix",
    "name_inside",
    "wrong_language",
    "prompt_echo",
    "refusal",
    "ai_voice",
    "repeat",
    "empty",
]
GUARDS: tuple[Guard, ...] = get_args(Guard)
"""In the order in which they are named."""
UNFIT: tuple[Guard, ...] = ("name_inside", "wrong_language", "prompt_echo", "refusal", "ai_voice")
"""What nobody can take out without inventing."""

REPEAT_WIDTH = 16
"""From this width on (wide characters count 2) a text is not said twice by chance; "Yes, please." may be."""
REPEATED_SHARE = 0.8
"""A text of which this much is one passage of an earlier one says nothing new."""
RECITED_WIDTH = 48
"""From this width on a goal or a sentence of the prompt is not said word for word by chance; "I want my money back" may
well be the goal."""
FEWEST_WORDS = 3
"""Words in small letters from which a text in Latin letters is more than names."""
FEWEST_SIGNS = 4
"""Signs of another script from which a text is more than a foreign word."""


@dataclass(frozen=True, slots=True)
class Voice:
    """As whom a model speaks: in which language, who takes part (`names`, the speaker among them), and what it was
    `told` that nobody says word for word: goals, sentences of its prompt."""

    language: Language
    names: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def find_guards(text: str, voice: Voice, said: Iterable[str] = ()) -> tuple[Guard, ...]:
    """All that is wrong with `text`, in the order above; `said` are the texts that it may not say again."""
    words, mended = mend_text(text, voice)
    plain = fold(words)
    fired = {
        "name_inside": bool(_inside(voice.names).search(words)),
        "wrong_language": is_in_another_language(words, voice.language),
        "prompt_echo": echoes(words, voice.told),
        "refusal": bool(_REFUSAL.search(plain)),
        "ai_voice": bool(_AI_VOICE.search(plain)),
        "repeat": says_again(words, said),
        "empty": not has_words(words),
    }
    return tuple(guard for guard in GUARDS if guard in mended or fired.get(guard))


def mend_text(text: str, voice: Voice) -> tuple[str, tuple[Guard, ...]]:
    """`text` without stage directions and without a speaker's name in front, and which of the two were there."""
    heading = match_heading(voice.names)
    mended: set[Guard] = set()
    while True:
        without = take_out_stage_directions(text)
        mended |= {"stage_direction"} if without != text else set()
        bare = heading.sub("", without, count=1)
        mended |= {"name_prefix"} if bare != without else set()
        if bare == text:
            return text, tuple(guard for guard in GUARDS if guard in mended)
        text = bare


def take_out_stage_directions(text: str) -> str:
    """`text` without what is done instead of said; as it is, where there is none.

    >>> take_out_stage_directions("*sighs deeply* Fine (laughs), I *really* mean it (all 2).")
    'Fine, I *really* mean it (all 2).'
    """
    found = _BRACKETED.sub(lambda match: "\0" if _is_direction(match) else match[0], text)
    if found == text:
        return text
    return re.sub(r"\s*\0+\s*", " ", _GONE.sub("", found)).strip(" ,，")


def has_words(text: str) -> bool:
    """Whether there is a letter, a digit or a picture in it."""
    return any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def is_in_another_language(text: str, language: Language) -> bool:
    """Whether all of `text` is in another language; names, quotations and single words in it do not count.

    >>> [is_in_another_language(text, "zh") for text in ("OK, bye!", "I will see you there tomorrow.")]
    [False, True]
    """
    own = take_out_quotations(text)
    own = own if has_words(own) else text
    if language_of(own) in (None, language):
        return False
    small = len(_SMALL_WORD.findall(own))
    others = sum(character.isalpha() and width(character) > 1 for character in own)
    if language == "zh":
        han = len(re.findall(f"[{HAN}]", own))
        kana = sum("\u3040" <= character <= "\u30ff" or "\uac00" <= character <= "\ud7a3" for character in own)
        return kana >= FEWEST_SIGNS or small >= FEWEST_WORDS + han
    return others >= FEWEST_SIGNS or small >= FEWEST_WORDS or _count_other_letters(own) >= FEWEST_SIGNS


def echoes(text: str, told: Iterable[str]) -> bool:
    """Whether a tag of a prompt is in it, or one of `told`, word for word."""
    plain = fold(text)
    wholes = (fold(one).rstrip(".!?。！？;；") for one in told)
    return bool(_TAG.search(text)) or any(width(whole) >= RECITED_WIDTH and whole in plain for whole in wholes)


def says_again(text: str, said: Iterable[str]) -> bool:
    """Whether one of `said` has nearly all of it."""
    plain = fold(text)
    return any(is_taken_from(fold(one), plain, REPEATED_SHARE, REPEAT_WIDTH) for one in said)


def is_taken_from(source: str, plain: str, share: float, at_least: int) -> bool:
    """Whether one passage of `source`, at least so wide, makes up at least `share` of `plain`; both are folded."""
    length = math.ceil(share * len(plain))
    starts = len(plain) - length + 1
    # what all the passages have in common: mostly it is nowhere, and then none of them is
    if plain[starts - 1 : length] not in source or width(plain) < at_least:
        return False
    passages = (plain[start : start + length] for start in range(starts))
    return any(passage in source and width(passage) >= at_least * share for passage in passages)


@lru_cache(maxsize=2048)  # every turn is held against all that was said before it
def fold(text: str) -> str:
    """NFKC, case folded, straight apostrophes, single spaces, nothing invisible."""
    if text.isascii():
        return " ".join(text.casefold().split())
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join("".join(x for x in text if unicodedata.category(x) != "Cf").split())


def width(text: str) -> int:
    """Wide characters count 2."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def list_name_forms(name: str) -> tuple[str, ...]:
    """The name and its first word: "Anna Keller" and "Anna"; none of an empty one."""
    return tuple(dict.fromkeys((name, *name.split()[:1]))) if name.split() else ()


@cache
def match_heading(names: tuple[str, ...], other: str = r"(?!)") -> re.Pattern[str]:
    """A text's start such as 'Anna Keller:', '**Anna**：' or '[Anna]:' (group `name`), or the pattern `other` so."""
    return re.compile(
        rf"\A\s*\W{{0,3}}(?:{other}|(?P<name>{_alternatives(names)}))[\s*\])）】]*[:：][\s*]*", re.IGNORECASE
    )


@cache
def _inside(names: tuple[str, ...]) -> re.Pattern[str]:
    """A heading after the end of a line or of a sentence."""
    return re.compile(rf"(?:\n|[.!?…。！？]['\"”’]?)[\s*\[]*(?:{_alternatives(names)})[\s*\]]*[:：]", re.IGNORECASE)


def _alternatives(names: tuple[str, ...]) -> str:
    forms = sorted({form for name in names for form in list_name_forms(name)}, key=lambda form: (-len(form), form))
    return "|".join(map(re.escape, forms)) or r"(?!)"


def _count_other_letters(text: str) -> int:
    return sum(
        character.isalpha() and not unicodedata.name(character, "LATIN").startswith("LATIN") for character in text
    )


_SMALL_WORD = re.compile(r"\b[a-zà-öø-ÿœßąćęłńóśźżčďěňřšťůžăâîșțğışđ]{2,}\b")
_TAG = re.compile(r"[<‹]/?[a-z]+(?:_[a-z]+)*[0-9]?[>›]")

_BRACKETED = re.compile(
    r"\*+(?P<starred>[^*\n]{1,80})\*+|\((?P<a>[^()\n]{1,80})\)|\[(?P<b>[^\[\]\n]{1,80})\]"
    r"|（(?P<c>[^（）\n]{1,24})）|【(?P<d>[^【】\n]{1,24})】|＊(?P<e>[^＊\n]{1,24})＊"
)
_GONE = re.compile(rf"\s*\0+\s*(?=[,.!?;:，。！？；：、]|\Z)|(?<=[{HAN}，。！？；：、])\s*\0+\s*|\A\s*\0+\s*")
"""Where nothing has to stand for what was taken out."""
_FEELING = (
    "sigh|laugh|chuckl|giggl|smil|grinn?|smirk|nodd?|shrugg?|frown|wink|gasp|groan|sobb?|weep|blush|paus|hesitat|mutter"
    "|whisper|cough|yawn|snort|scoff|winc|gulp|clapp?|sniff|beam|exhal|inhal|shiver|trembl"
)
_DONE = (
    r"(?:looks?|looking|glances?|glancing|stares?|staring|gazes?)\s(?:up|down|around|away|over|at|out|back|into)"
    r"|(?:turns?|turning|walks?|walking|leans?|leaning|steps?|stepping)\s"
    r"(?:to|towards?|away|back|closer|around|over|in|forward)"
    r"|(?:stands?|standing|gets?)\sup|(?:sits?|sitting)\s(?:down|back|up)|waves?(?:\s(?:goodbye|hello|at|a\shand).*|\Z)"
    r"|(?:raises?|raising|lifts?)\s(?:an?|one|his|her|their|both)?\s?(?:eyebrows?|hands?|voice|glass|finger)"
    r"|(?:rolls?|rolling)\s(?:his|her|their)?\s?eyes|(?:shakes?|shaking)\s(?:his|her|their)?\s?head"
    r"|(?:clears?|clearing)\s(?:his|her|their)?\s?throat|(?:takes?|taking)\sa\s(?:\w+\s)?(?:breath|sip)"
    r"|cries|crying|silence|beat|(?:hangs?|hanging)\sup|(?:phone|doorbell)\srings|sound\sof\b"
    r"|to\s(?:him|her|them)sel(?:f|ves)|narrator\b|scene\b:?|in\san?\s\w+\s(?:voice|tone)"
)
_MANNER = (
    "softly|quietly|nervously|gently|excitedly|sarcastically|angrily|sadly|cheerfully|jokingly|dryly|hesitantly|warmly"
    "|teasingly|playfully|sheepishly|firmly|calmly"
)
_DIRECTION = re.compile(
    rf"(?:(?:he|she|they|i)\s)?(?:(?:\w+ly|still|then|an?|long|short|brief|with|awkward)\s)*"
    rf"(?:(?:(?:{_FEELING})(?:e|s|es|ed|ing)?|{_DONE})\b.*|(?:{_MANNER}))",
    re.IGNORECASE,
)
_DIRECTION_ZH = re.compile(
    r"(?:[他她我]|[\u4e00-\u9fff]{1,4}地|微微|轻轻|默默|长长)*(?:叹|[微苦大冷偷傻坏轻]笑|笑(?![话点容料星剧])|点了?点?头"
    r"|摇了?摇?头|沉默|停顿|顿了|皱了?皱?眉|耸了?耸?肩|哽咽|抽泣|哭(?![诉笑])|流泪|挥了?挥?手|鞠躬|拥抱|转身|起身|站起|坐下"
    r"|低下?头|抬起?头|清了?清?嗓|深吸|深呼|咳嗽|轻咳|[小轻低大]声|旁白|自言自语|语气|挠头|翻白眼|眨了?眨?眼|看着|看向|望着|望向"
    r"|走[向到过]|拿起|放下|拍了?拍|握住|指着|指了指|电话铃|门铃|脚步声).*"
)


_STRESSED = frozenset("laugh smile frown whisper mutter weep beam clap hesitate blush shiver tremble cries".split())  # noqa: SIM905
"""What between stars may be a word that is said with stress."""


def _is_direction(match: re.Match[str]) -> bool:
    inner = next(group for group in match.groups() if group is not None).strip()
    if "?" in inner or "？" in inner:
        return False
    found = _DIRECTION.fullmatch(inner)
    if found and not (match["starred"] and inner.casefold() in _STRESSED):
        return True
    return bool(_DIRECTION_ZH.fullmatch(inner))


_CANNOT = r"\b(?:can't|cannot|can\ not|won't|unable\ to|not\ able\ to)"
_THEIR_KIND = r"(?:这个|这项|这段|该|此类|这类|相关|任何|这样的|此)"
_REFUSAL = re.compile(
    rf"""
      {_CANNOT}\ (?:assist|comply)\ (?:you\ )?with\ (?:that|this|your|such)\b
    | {_CANNOT}\ (?:help\ (?:you\ )?with|fulfil+|complete)\ (?:that|this|your)\ request\b
    | {_CANNOT}\ (?:create|generate|write|produce|provide|continue|engage\ in|participate\ in)\ (?:with\ )?
        (?:that|this|such|any|the)\ (?:(?:kind|type)\ of\ |requested\ |explicit\ |harmful\ )?
        (?:content|dialogue|conversation|role-?\ ?play|scenario|material|request)\b
    | \b(?:violates?|against)\ (?:my|our|the)\ (?:(?:content|usage|safety)\ )?
        (?:guidelines|polic(?:y|ies)|programming)\b
    | (?:无法|不能|没办法)(?:为[您你])?(?:协助|满足|完成|处理|回应|遵从)(?:[您你]的)?{_THEIR_KIND}?
        (?:请求|要求|指令)
    | (?:无法|不能)(?:继续)?(?:为[您你])?(?:参与|生成|提供|创作|撰写|编写){_THEIR_KIND}[^。!?]{{0,8}}
        (?:内容|对话|角色扮演|文本)
    | 违反(?:了)?(?:我的|我们的|相关)?(?:内容|使用|安全)?(?:准则|政策)
    """,
    re.VERBOSE,
)
_NO_PERSON = r"(?=\W*(?:\Z|[,.;!?。])|\ (?:and|so|but|that|here|not|without|created|developed|trained|designed)\b)"
"""What follows where no researcher, engineer or enthusiast does."""
_MODEL_ZH = r"(?:ai|人工智能|大?语言模型|智能助手)(?:语言)?(?:助手|模型|程序|系统|机器人)?"
_AI_VOICE = re.compile(
    rf"""
      \bas\ an?\ (?:ai|artificial\ intelligence|(?:large\ )?language\ model|virtual\ assistant)\b
        (?:\ (?:language\ )?(?:model|assistant|chatbot))?\ ?,?\ (?:i|my)\b
    | \bi(?:\ am|'m)\ (?:just\ |only\ |merely\ )?an?\ (?:(?:large\ )?language\ model|virtual\ assistant
        |ai\ (?:language\ )?(?:model|assistant|chatbot|program|system))\b
    | \bi(?:\ am|'m)\ (?:just\ |only\ |merely\ )?an?\ (?:ai|artificial\ intelligence){_NO_PERSON}
    | \bi(?:\ was|'ve\ been|\ have\ been)\ (?:trained|programmed|developed)\ by
        \ (?:openai|google|anthropic|alibaba|meta)\b
    | 作为(?:一个|一名|一款)?{_MODEL_ZH},?我
    | 我(?:只|仅仅)?是(?:一个|一名|一款|个)?{_MODEL_ZH}(?=\Z|[,。.!、;?]|没|不|无|所以|并)
    """,
    re.VERBOSE,
)
