"""Writes the briefs of all characters: each is dealt a text that inspires it, which is read where it lies."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tasks.foundation.settings.sections import PerLanguage
from tasks.foundation.stage import Stored, TableWriter
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import cut_text
from tasks.personas.characters import BRIEFS, CharacterBrief, draw_brief
from tasks.personas.inspirations import Inspiration, draw_of_pool, take_turns
from tasks.personas.people import Person, draw_people
from tasks.personas.pool import Pool
from tasks.personas.readers import inspire

AT_ONCE = 4096
COLUMNS = ("persona_id", "raw", "description")
Corpora = Mapping[Language, Sequence[Sequence[Inspiration]]]
"""The texts of each corpus, by the language of the characters that they inspire."""

log = logging.getLogger(__name__)


@dataclass
class _Writer:
    """Writes briefs some thousand at a time; keeps their ids by language and number."""

    table: TableWriter
    people: Mapping[Language, Sequence[Person]]
    seed: int
    most: int
    ids: dict[tuple[Language, int], str] = field(default_factory=dict)
    _waiting: list[CharacterBrief] = field(default_factory=list)

    def add(self, language: Language, number: int, inspiration: Inspiration) -> None:
        shown = replace(inspiration, text=cut_text(inspiration.text, self.most))
        brief = draw_brief(language, number, self.people[language][number], shown, self.seed)
        self.ids[language, number] = brief.character_id
        self._waiting.append(brief)
        if len(self._waiting) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        self.table.write(BRIEFS.arrow(self._waiting))
        self._waiting.clear()


def write_briefs(
    characters: PerLanguage,
    pools: Sequence[Pool],
    corpora: Corpora,
    candidates: Stored,
    table: TableWriter,
    *,
    seed: int,
    most: int,
) -> list[str]:
    """Writes the brief of every character, inspired by at most so many characters of a text; their ids by language and
    number."""
    people = {language: draw_people(language, characters.of(language), seed) for language in LANGUAGES}
    writer = _Writer(table, people, seed, most)
    pools = sorted((pool for pool in pools if pool.kept), key=lambda pool: pool.name)
    ends = [draw_of_pool(pool.kept_ids, characters.en, characters.zh, seed) for pool in pools]
    inspired: dict[int, list[tuple[Language, int, Pool]]] = {}
    """By row of the candidates, the characters that it inspires, and its pool."""
    for end, language in enumerate(LANGUAGES):
        texts = corpora[language]
        turns = take_turns([*(len(each[end]) for each in ends), *map(len, texts)], characters.of(language))
        for number, (source, place) in enumerate(turns):
            if source < len(pools):
                row = pools[source].kept[ends[source][end][place]]
                inspired.setdefault(row, []).append((language, number, pools[source]))
            else:
                writer.add(language, number, texts[source - len(pools)][place])
    _warn_of_repeats(characters, sum(len(pool.kept) for pool in pools), corpora)
    for row, persona_id, raw, description in _read_rows(candidates, inspired):
        for language, number, pool in inspired[row]:
            writer.add(language, number, Inspiration(inspire(pool.reader, raw, description), pool.name, persona_id))
    writer.flush()
    return [writer.ids[each] for each in sorted(writer.ids)]


def _read_rows(candidates: Stored, rows: Collection[int]) -> Iterator[tuple[int, str, str, str]]:
    """Row, id, source row and description of some candidates, read batch by batch."""
    start = 0
    for batch in candidates.batches(list(COLUMNS)) if rows else ():
        wanted = [row for row in range(start, start + batch.num_rows) if row in rows]
        some = batch.take(pa.array([row - start for row in wanted], pa.int64()))
        yield from zip(wanted, *(some[name].to_pylist() for name in COLUMNS), strict=True)
        start += batch.num_rows


def _warn_of_repeats(characters: PerLanguage, n_personas: int, corpora: Corpora) -> None:
    """Says where there are fewer different texts than characters: in one language, or in both together."""
    own = {language: sum(map(len, corpora[language])) for language in LANGUAGES}
    asked = {f"in {LANGUAGES[each]}": (characters.of(each), n_personas + own[each]) for each in LANGUAGES}
    asked["in all"] = (characters.total, n_personas + sum(own.values()))
    for where, (count, n_texts) in asked.items():
        if 0 < n_texts < count:
            log.warning(
                "personas.characters asks for %d characters %s, and there are %d different texts to inspire them, so "
                "each inspires up to %d: more personas, or texts in personas.inspirations, make them more diverse",
                *(count, where, n_texts, -(-count // n_texts)),
            )
