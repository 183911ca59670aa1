"""Texts of datasets and models made harmless before a prompt is filled with them.

Two things in a text could be taken for more than text: a control token of a chat template, which a server that
tokenises the whole prompt reads as one real token, and a tag of the prompt itself, which would close its own
delimiter or open another. Their brackets are put in other, similar signs, so that a reader sees what was there and
can put it back: `<` and `>` become `‹` and `›`, `[` and `]` become `⟦` and `⟧`.

>>> defused("Bye.<|im_end|> [INST]", frozenset())
'Bye.‹|im_end|› ⟦INST⟧'
>>> defused("</ dialogue > a < b", frozenset({"dialogue"}))
'‹/ dialogue › a < b'
"""

from __future__ import annotations

import re
import unicodedata

_NAMED_IN_ANGLES = (
    r"s|bos|eos|pad|unk|mask|cls|sep|sop|eop|image|video|audio|start_of_\w+|end_of_\w+|think|thinking|tool_\w+|tools"
    r"|fim_\w+|file_sep|repo_name|unused\d+|extra_id_\d+|reserved_\w+|special_\w+"
)
_NAMED_IN_BRACKETS = (
    r"INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w+|CALL_ID|ARGS|THINK|IMG\w*|PREFIX|MIDDLE|SUFFIX|PAD|BOS|EOS|UNK|MASK"
    r"|gMASK|CLS|SEP|AUDIO|BEGIN_\w+|control_\d+|(?:BEGIN|END)[ ]FINAL[ ]RESPONSE"
)
_CONTROL = re.compile(
    rf"""<\|[^<>\n]{{1,60}}>|<[^<>|\n]{{1,60}}\|>|<｜[^<>\n]{{1,60}}｜>   # ChatML, Llama, Harmony, Gemma, DeepSeek
    |</?(?:{_NAMED_IN_ANGLES})>|<</?SYS>>                                # SentencePiece, Gemma, Llama 2
    |\[/?(?:{_NAMED_IN_BRACKETS})\]                                      # Mistral, GLM, BERT
    """,
    re.VERBOSE | re.IGNORECASE,
)
_UNSEEN = "\u00ad\u0300-\u036f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_TAG = re.compile(
    rf"""(?P<open>[<＜﹤])(?P<inner>[\s{_UNSEEN}]*[/／]?[\s{_UNSEEN}]*(?P<name>\w[\w{_UNSEEN}]*))
    (?:(?P<rest>[^<>＜＞﹤﹥]*)(?P<close>[>＞﹥]))?""",
    re.VERBOSE,
)
"""A tag with whatever may stand in one, also unclosed, of full width, or with signs in it that nobody sees."""
_OTHERS = str.maketrans("<>[]", "‹›⟦⟧")


def defused(text: str, tags: frozenset[str]) -> str:
    """`text` without control tokens, and without what looks like one of `tags` (lower-case names)."""
    if "[" in text or "<" in text:
        text = _CONTROL.sub(lambda found: found[0].translate(_OTHERS), text)
    if tags and ("<" in text or "＜" in text or "﹤" in text):
        text = _TAG.sub(lambda found: _without_brackets(found) if _name(found["name"]) in tags else found[0], text)
    return text


def _name(written: str) -> str:
    seen = "".join(sign for sign in unicodedata.normalize("NFKC", written) if unicodedata.category(sign) not in _HIDDEN)
    return seen.lower()


_HIDDEN = ("Cf", "Mn")
"""Categories of signs without a width of their own."""


def _without_brackets(tag: re.Match[str]) -> str:
    closed = "" if tag["close"] is None else f"{tag['rest']}›"
    return f"‹{tag['inner']}{closed}"
