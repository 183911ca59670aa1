"""From the personas of one source to its pool: embedded, deduplicated, sampled by stratum."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.foundation.accounting import Accounting
from tasks.foundation.encoder import Encoder
from tasks.foundation.settings import PersonaSource, PersonasSection
from tasks.foundation.tables.personas import Duplicate, PersonaCandidate, PersonaPoolRow
from tasks.personas.ages import age_bucket
from tasks.personas.dedupe import Deduplicated, deduplicate
from tasks.personas.reading import Persona, Reading
from tasks.personas.stratify import draw, stratum_of


@dataclass(frozen=True, slots=True)
class Pool:
    """What one source ends as."""

    candidates: list[PersonaCandidate]
    duplicates: list[Duplicate]
    drawn: list[PersonaPoolRow]
    accounting: Accounting


def make_pool(reading: Reading, source: PersonaSource, section: PersonasSection, encoder: Encoder, seed: int) -> Pool:
    """Candidates of the reading, those dropped as duplicates, and the drawn pool in rank order."""
    candidates = as_candidates(reading, source, encoder)
    texts = [candidate.description for candidate in candidates]
    result = deduplicate(
        [candidate.persona_id for candidate in candidates],
        texts,
        encoder.encode(texts),
        lambda position: encoder.encode_alone(texts[position]),
        threshold=section.dedup.threshold,
        seed=seed,
    )
    kept = [candidates[position] for position in result.kept]
    drawn = draw_pool(kept, source, section.pool_size, seed)
    return Pool(
        candidates,
        [*reading.repeats, *dropped_rows(result, candidates)],
        drawn,
        _accounting(reading, n_dropped=len(result.dropped), n_kept=len(kept), n_drawn=len(drawn)),
    )


def as_candidates(reading: Reading, source: PersonaSource, encoder: Encoder) -> list[PersonaCandidate]:
    """The rows of `persona_candidates`, in order of the source."""
    counts = encoder.count_pieces([persona.description for persona in reading.personas])
    return [
        _candidate(persona, reading.persona_id(persona.source_key), source, count)
        for persona, count in zip(reading.personas, counts, strict=True)
    ]


def dropped_rows(result: Deduplicated, candidates: list[PersonaCandidate]) -> list[Duplicate]:
    """The rows of `duplicates` for personas that are too close to a kept one."""
    return [
        Duplicate(
            table_name="persona_candidates",
            row_id=candidates[dropped.position].persona_id,
            duplicate_of=candidates[dropped.closest].persona_id,
            cosine=dropped.cosine,
            method=dropped.method,
        )
        for dropped in result.dropped
    ]


def draw_pool(kept: list[PersonaCandidate], source: PersonaSource, size: int, seed: int) -> list[PersonaPoolRow]:
    """The stratified sample of a pool in rank order; all of them when there are fewer than `size`."""
    strata = [persona_stratum(candidate, source) for candidate in kept]
    drawn, quota = draw([candidate.persona_id for candidate in kept], strata, size, seed)
    return [
        PersonaPoolRow(
            pool=source.pool,
            rank=rank,
            persona_id=kept[position].persona_id,
            stratum=strata[position],
            quota=quota[strata[position]],
        )
        for rank, position in enumerate(drawn)
    ]


def persona_stratum(candidate: PersonaCandidate, source: PersonaSource) -> str:
    """Primary topic × length bucket for PersonaMem, occupation group × age bucket for all others."""
    if source.reader == "personamem":
        return stratum_of([next(iter(candidate.topic_tags), None), candidate.interaction_length_bucket])
    return stratum_of([candidate.occupation_group, candidate.age_bucket])


def _candidate(persona: Persona, persona_id: str, source: PersonaSource, token_count: int) -> PersonaCandidate:
    return PersonaCandidate(
        persona_id=persona_id,
        pool=source.pool,
        source_key=persona.source_key,
        language=persona.language,
        name=persona.name,
        description=persona.description,
        age=persona.age,
        age_bucket=age_bucket(persona.age),
        sex=persona.sex,
        occupation=persona.occupation,
        occupation_group=persona.occupation_group,
        education_level=persona.education_level,
        marital_status=persona.marital_status,
        race_ethnicity=persona.race_ethnicity,
        city=persona.city,
        state=persona.state,
        country=persona.country,
        big_five=persona.big_five,
        topic_tags=list(persona.topic_tags),
        interaction_length_bucket=persona.interaction_length_bucket,
        speaking_style=persona.speaking_style,
        hobbies=list(persona.hobbies),
        token_count=token_count,
        licence=source.licence,
        raw=persona.raw,
    )


def _accounting(reading: Reading, *, n_dropped: int, n_kept: int, n_drawn: int) -> Accounting:
    ended = {
        **reading.filtered,
        "duplicate": n_dropped + len(reading.repeats),
        "not_sampled": n_kept - n_drawn,
    }
    return Accounting(
        n_in=reading.n_in,
        n_produced=n_drawn,
        filtered={reason: count for reason, count in ended.items() if count},
        failed=dict(reading.failed),
    )
