"""The files of the published DEMO benchmark, read into rows of ours and written from them.

`element_awareness_{en,zh}.json` is one list of items {type, dialogue_hs, dataset_id, instruction, answer};
`dialogue_agent_interaction_{en,zh}.jsonl` has an episode a line: {uuid, person1 {name, background}, person2, goal [2],
topic, combine {time, location, talkway, relationship, familiarity}}.

Their labels have blanks in their names where ours have underscores. What they do not hold (goal type, the turn of an
utterance that is not found in its dialogue) is null.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tasks.awareness.prompts import PROMPTS, make_inputs
from tasks.foundation.errors import SourceError
from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.llm.output_form import describe_form
from tasks.foundation.settings.sections import TextLimitsSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask, InteractionEpisode
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import language_of
from tasks.foundation.texts.replies import Manner, bind

ITEMS_FILE, EPISODES_FILE = "element_awareness_{}.json", "dialogue_agent_interaction_{}.jsonl"

LABELS = {
    "goal_completion": "goal completion",
    "big_five": "big five",
    "speaking_style": "speaking style",
}
"""Our names of labels → theirs (appendix E), where they differ."""

_THEIRS_TO_OURS = {theirs: ours for ours, theirs in LABELS.items()}


class OriginalItem(BaseModel):
    type: AwarenessTask
    dialogue_hs: str | list[Any]
    dataset_id: str | int
    instruction: str
    answer: Any


class OriginalPerson(BaseModel):
    name: str
    background: str | dict[str, Any]


class OriginalSetting(BaseModel):
    time: str
    location: str
    talkway: str
    relationship: str
    familiarity: int | float | str


class OriginalEpisode(BaseModel):
    uuid: str | int
    person1: OriginalPerson
    person2: OriginalPerson
    goal: list[str] = Field(min_length=2, max_length=2)
    topic: str
    combine: OriginalSetting


@dataclass(frozen=True, slots=True)
class Imported:
    """The rows of some files, and the keys of theirs that no column of ours holds, with how often they occur."""

    items: tuple[AwarenessItem, ...]
    episodes: tuple[InteractionEpisode, ...]
    ignored: Mapping[str, int]


AnyOriginal = TypeVar("AnyOriginal", OriginalItem, OriginalEpisode)


def read_original(files: Sequence[Path], language: Language | None = None) -> Imported:
    """The items and episodes of the files, told by their content. The language is the one given, else that of the
    file's name (`…_zh.json`), else told from the text.

    Raises SourceError for a file that cannot be read or an entry that is neither, naming the file and the entry.
    """
    items: list[AwarenessItem] = []
    episodes: list[InteractionEpisode] = []
    ignored: Counter[str] = Counter()
    copies: Counter[str] = Counter()
    for file in files:
        named = language or _language_in_name(file)
        for number, entry in enumerate(_read_entries(file), start=1):
            where = f"{file}, entry {number}"
            if "uuid" in entry:
                episode = _checked(OriginalEpisode, entry, where, ignored)
                episodes.append(_make_episode(episode, named or _told(where, episode.topic, *episode.goal), where))
            else:
                item = _checked(OriginalItem, entry, where, ignored)
                copies[canonical_json(entry)] += 1
                copy = copies[canonical_json(entry)]
                items.append(_make_item(item, named or _told(where, _as_text(item.dialogue_hs)), copy, where))
    twice = [uuid for uuid, n in Counter(episode.dialogue_id for episode in episodes).items() if n > 1]
    if twice:
        raise SourceError(f"expected each episode once, found uuid {twice[0]!r} again: name each file once")
    return Imported(tuple(items), tuple(episodes), ignored)


def write_original(
    folder: Path,
    items: Iterable[AwarenessItem],
    episodes: Iterable[InteractionEpisode],
    limits: TextLimitsSection,
) -> dict[str, int]:
    """Writes the files of each language there is into `folder`; returns the rows of each file. `limits`: what the
    instructions of items made here tell of lengths."""
    written: dict[str, int] = {}
    for language, of_language in _by_language(items).items():
        name = ITEMS_FILE.format(language)
        entries = [show_item(item, limits) for item in of_language]
        (folder / name).write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        written[name] = len(entries)
    for language, those in _by_language(episodes).items():
        name = EPISODES_FILE.format(language)
        lines = [json.dumps(show_episode(episode), ensure_ascii=False) for episode in those]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        written[name] = len(lines)
    return written


def show_item(item: AwarenessItem, limits: TextLimitsSection) -> dict[str, Any]:
    """An item as the original has it. The instruction of one made here is our prompt, filled in, with the form of the
    answer: the original's code sends nothing else."""
    return {
        "type": item.task,
        "dialogue_hs": item.dialogue_text,
        "dataset_id": item.dialogue_id,
        "instruction": item.instruction or _write_instruction(item, limits),
        "answer": _renamed(json.loads(item.gold), LABELS),
    }


def show_episode(episode: InteractionEpisode) -> dict[str, Any]:
    """An episode as the original has it."""
    return {
        "uuid": episode.dialogue_id,
        "person1": {"name": episode.speaker1, "background": episode.background1},
        "person2": {"name": episode.speaker2, "background": episode.background2},
        "goal": [episode.goal1, episode.goal2],
        "topic": episode.topic,
        "combine": {
            "time": episode.time,
            "location": episode.location,
            "talkway": taxonomy("talkway").show(episode.talkway, episode.language),
            "relationship": episode.relationship,
            "familiarity": episode.familiarity,
        },
    }


def _read_entries(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON list, or of JSON lines."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        whole = text.lstrip().startswith("[")
        entries = json.loads(text) if whole else [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise SourceError(f"{file}: expected a JSON list or JSON lines in UTF-8, but {error}") from None
    if not entries:
        raise SourceError(f"{file}: expected items or episodes of the published benchmark, found none")
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise SourceError(f"{file}, entry {number}: expected an object, found {type(entry).__name__}")
        yield entry


def _checked(kind: type[AnyOriginal], entry: dict[str, Any], where: str, ignored: Counter[str]) -> AnyOriginal:
    try:
        checked = kind.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        expected = ", ".join(kind.model_fields)
        raise SourceError(f"{where}, {place}: {first['msg']}; expected an object with {expected}") from None
    ignored.update(entry.keys() - kind.model_fields.keys())
    return checked


def _make_item(item: OriginalItem, language: Language, copy: int, where: str) -> AwarenessItem:
    """`copy` numbers entries that are alike in everything."""
    gold = _renamed(_as_object(item.answer), _THEIRS_TO_OURS)
    dialogue = _as_text(item.dialogue_hs)
    text = _utterance_of(gold, where) if item.type == "utterance" else None
    identity = (str(item.dataset_id), item.type, item.instruction, gold, copy)
    return AwarenessItem(
        item_id=content_id("item", "import", *identity),
        task=item.type,
        language=language,
        dialogue_id=str(item.dataset_id),
        dialogue_text=dialogue,
        turn_index=None if text is None else _find_turn(dialogue, text),
        utterance_text=text,
        gold=canonical_json(gold),
        instruction=item.instruction,
        source="import",
    )


def _make_episode(episode: OriginalEpisode, language: Language, where: str) -> InteractionEpisode:
    setting = episode.combine
    return InteractionEpisode(
        episode_id=content_id("episode", "import", str(episode.uuid)),
        language=language,
        dialogue_id=str(episode.uuid),
        speaker1=episode.person1.name,
        speaker2=episode.person2.name,
        background1=_as_lines(episode.person1.background),
        background2=_as_lines(episode.person2.background),
        goal1=episode.goal[0],
        goal2=episode.goal[1],
        goal_type=None,
        topic=episode.topic,
        time=setting.time,
        location=setting.location,
        talkway=taxonomy("talkway").find(setting.talkway) or setting.talkway,
        relationship=setting.relationship,
        familiarity=_read_familiarity(setting.familiarity, where),
        source="import",
    )


def _utterance_of(gold: Any, where: str) -> str:
    text = gold.get("content") if isinstance(gold, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise SourceError(f"{where}: expected the utterance in answer.content, found {text!r}")
    return text


def _find_turn(dialogue: str, utterance: str) -> int | None:
    """The place among the dialogue's utterances of the only one that says this; None where none or several do.

    >>> _find_turn("Ann: Hello\\nBo: Hi there\\n", "Hi there")
    2
    """
    said = [match[1] for line in dialogue.splitlines() if (match := re.match(r"[^:：\n]{1,60}[:：]\s*(\S.*)", line))]
    found = [place for place, text in enumerate(said, start=1) if _squeezed(text) == _squeezed(utterance)]
    return found[0] if len(found) == 1 else None


def _read_familiarity(value: float | str, where: str) -> int:
    """The whole number in it: "10 (close)" is 10, not 1. SourceError for none from 0 to 10."""
    digits = re.search(r"\d+(?:\.\d+)?", str(value))
    number = float(digits[0]) if digits else -1.0
    if not 0 <= number <= 10 or number != int(number):
        raise SourceError(f"{where}, combine.familiarity: expected a whole number from 0 to 10, found {value!r}")
    return int(number)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(name, name): _renamed(inner, names) for name, inner in value.items()}
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value


def _as_object(answer: Any) -> Any:
    """An answer that is JSON in a text, with or without a fence, as what it says."""
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(re.sub(r"^\s*```(?:json)?\s*|\s*```\s*$", "", answer))
    except ValueError:
        return answer


def _as_text(dialogue: str | list[Any]) -> str:
    if isinstance(dialogue, str):
        return dialogue
    return "\n".join(_as_line(turn) for turn in dialogue)


def _as_line(turn: Any) -> str:
    if isinstance(turn, dict) and {"person", "content"} <= turn.keys():
        return f"{turn['person']}: {turn['content']}"
    return str(turn)


def _as_lines(background: str | dict[str, Any]) -> str:
    if isinstance(background, str):
        return background
    return "\n".join(f"{name}: {value}" for name, value in background.items())


def _write_instruction(item: AwarenessItem, limits: TextLimitsSection) -> str:
    prompt = PROMPTS[item.task]
    system, user = (message.content for message in prompt.render(item.language, make_inputs(item), limits))
    reply: type[BaseModel] | None = prompt.reply_model
    assert reply is not None, "every awareness task has a form"
    bound: type[BaseModel] = bind(reply, Manner(limits, item.language))
    return "\n\n".join((system, user, describe_form(bound, item.language)))


def _language_in_name(file: Path) -> Language | None:
    found = re.search(r"[_.-](en|zh)(?=[_.-]|$)", file.stem)
    return None if found is None else ("en" if found[1] == "en" else "zh")


def _told(where: str, *texts: str) -> Language:
    """The language that the texts are in; SourceError for one that the benchmark does not have."""
    found = language_of("\n".join(texts))
    if found not in ("en", "zh"):
        raise SourceError(
            f"{where}: expected English or Chinese, found {found or 'no language'}: name it with --language"
        )
    return "en" if found == "en" else "zh"


def _squeezed(text: str) -> str:
    return " ".join(text.split())


Rows = TypeVar("Rows", AwarenessItem, InteractionEpisode)


def _by_language(rows: Iterable[Rows]) -> dict[str, list[Rows]]:
    found: dict[str, list[Rows]] = {}
    for row in rows:
        found.setdefault(row.language, []).append(row)
    return found
