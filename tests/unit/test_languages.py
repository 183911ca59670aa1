"""The language of a text, of a source row and of a setting; texts are held against others only by what knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.foundation.errors import ConfigError
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.sections import NearSection
from tasks.foundation.tables.languages import language_named
from tasks.foundation.texts.dedupe import find_duplicates
from tasks.foundation.texts.languages import language_of
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.personas.task import STAGE as PERSONAS
from tasks.scenes.task import STAGE as SCENES
from tests.unit.source_stages import SAMPLE, FakeContext, rows_of, write_jsonl

PEOPLE = {
    "lo": ("ລາວຂາຍໝາກໄມ້ຢູ່ຕະຫຼາດທຸກເຊົ້າ", "ລາວສ້ອມແປງເຮືອຢູ່ແຄມແມ່ນ້ຳ"),
    "ko": ("그는 산골 학교에서 음악을 가르친다", "그녀는 지하철 기관사이고 소설을 쓴다"),
    "ja": ("彼は山あいの村で炭を焼いている。", "彼女は図書館に勤め、週末は合唱団で歌う。"),
    "ta": ("அவர் கடலோரத்தில் மீன் விற்கிறார்", "அவள் பள்ளியில் கணிதம் கற்பிக்கிறாள்"),
    "ru": ("Она чинит часы в мастерской у вокзала.", "Он водит трамвай и разводит голубей."),
    "ar": ("يصلح الساعات القديمة في دكان صغير قرب الميناء", "تدرس النجوم ليلا وتعمل في مخبز نهارا"),
    "fr": ("Elle répare des horloges dans une petite boutique.", "Il conduit un tramway et élève des pigeons."),
    "tr": ("Limanda eski saatleri tamir ediyor ve keman çalıyor.", "Geceleri yıldızları izleyen bir fırıncı."),
    "emoji": ("🎻🌊🕰️", "🚋🕊️🌙"),
}
CODES = {"emoji": None, "lo": "lao"}
"""What is found where it is not the code of a language."""
ALL = [text for texts in PEOPLE.values() for text in texts]


class SamenessEncoder(WordEncoder):
    """What an encoder makes of texts that it cannot read: all of them are the same to it."""

    fingerprint = "sameness"

    def encode_alone(self, text: str) -> np.ndarray:
        return np.eye(1, self.dimensions, dtype=np.float64)[0]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("hello there", "en"),
        ("a b c d e f g h", "en"),
        ("oak baker", "en"),
        ("Nurse", "en"),
        ("José from São Paulo sells λ-shaped lamps", "en"),
        ("Ｆｕｌｌ ｗｉｄｔｈ ｌｅｔｔｅｒｓ ｏｆ ａ ｃａｒｅｆｕｌ ｍａｎ", "en"),
        ("I said 你好 to him then", "en"),
        ('Her motto is "不积跬步，无以至千里；不积小流，无以成江海" and she lives by it.', "en"),
        ("Kim works at 삼성 and lives near the river.", "en"),
        ("你好", "zh"),
        ("我用iPhone", "zh"),
        ("她用MacBook Pro和Photoshop在Starbucks做设计", "zh"),
        ("他说“I love you, and the world is yours”，然后转身离开了教室", "zh"),
        ("哈哈哈 hhhhhhhhhhhh", "zh"),
        ("优の良品的店员，喜欢猫", "zh"),
        ("佢哋喺香港返工", "zh"),
        ("老师の日常：备课の时候喝咖啡，下课の时候打球。", "zh"),
        ("来自日本的留学生，名字叫さくら，喜欢看《ワンピース》。", "zh"),
        ("東京の小さな店で働く人", "ja"),
        ("コーヒーとケーキ", "ja"),
        ("그는 Samsung Electronics에서 일하는 엔지니어다", "ko"),
        ("Sie arbeitet bei Google in München und kocht gern", "de"),
        ("Ela conserta relógios antigos numa loja perto do porto.", "pt"),
        ("", None),
        ("12 34 — 56!", None),
        *((text, CODES.get(language, language)) for language, texts in PEOPLE.items() for text in texts),
    ],
)
def test_the_language_is_told_from_script_and_words(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_every_persona_and_dialogue_of_the_sample_keeps_its_language() -> None:
    personas, scenes = FakeContext(PERSONAS), FakeContext(SCENES)
    candidates = rows_of(PERSONAS.prepare(personas).rows["persona_candidates"])
    seeds = rows_of(SCENES.prepare(scenes).rows["seed_dialogues"])
    assert {row.language for row in candidates} == {"en"}  # type: ignore[attr-defined]
    assert {(row.corpus, row.language) for row in seeds} == {("soda", "en"), ("lccc", "zh")}  # type: ignore[attr-defined]


def test_no_single_utterance_of_the_sample_is_in_a_language_without_prompts() -> None:
    found = {language_of(text) for name in ("soda", "lccc") for text in _utterances(SAMPLE / f"{name}.jsonl")}
    assert found <= {"en", "zh", None}


@pytest.mark.parametrize(
    ("spelling", "language"),
    [
        *((each, "en") for each in ("en", "EN", " En ", "en-US", "en_GB", "eng", "English", "ENGLISH (UK)", "英文")),
        *((each, "zh") for each in ("zh", "zh-Hans", "ZH_tw", "zho", "Chinese", "Mandarin Chinese", "繁體中文")),
        *((each, None) for each in ("de", "Deutsch", "xx", "", "  ", "enlightened", None, 7)),
    ],
)
def test_a_language_is_named_in_any_case_and_form(spelling: Any, language: str | None) -> None:
    assert language_named(spelling) == language


def test_the_settings_take_any_form_of_a_language() -> None:
    settings = load_settings("test", ["chatseeds.language=Chinese", "judging.prompt_language=EN-us"])
    assert (settings.chatseeds.language, settings.judging.prompt_language) == ("zh", "en")
    with pytest.raises(ConfigError, match="'en' or 'zh', found 'German'"):
        load_settings("test", ["chatseeds.language=German"])


def test_people_in_languages_without_prompts_are_rejects_that_say_so(tmp_path: Path) -> None:
    _context, made = _personas(tmp_path, [*ALL, "She bakes bread in a village by the sea."], "")
    assert made.accounting.filtered == {"language": len(ALL)} and made.accounting.n_produced == 1
    reasons = [row.reason for row in rows_of(made.rows["rejects"])]  # type: ignore[attr-defined]
    assert len(reasons) == len(ALL) and all("(English or Chinese), found a text" in reason for reason in reasons)
    assert any("in Korean" in reason for reason in reasons) and any("without words" in reason for reason in reasons)


def test_unlike_people_that_the_encoder_cannot_read_all_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, made = _personas(tmp_path, [*ALL, ALL[2]], ", language: English")
    assert made.accounting.n_produced == len(ALL) and made.accounting.filtered == {"duplicate": 1}
    assert f"{len(ALL) + 1} of {len(ALL) + 1} texts said to be English are in another language" in caplog.text


def test_a_pool_of_which_most_is_dropped_says_so_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _personas(tmp_path, [f"She tells the children story number {number}." for number in range(9)], "")
    assert "deduplication dropped 8 of 9: 8 are near one by the encoder. 8 are like persona_" in caplog.text


@pytest.mark.parametrize(("column", "language"), [("EN-us", "en"), ("中文", "zh"), ("", "en"), ("unknown", "en")])
def test_the_column_of_a_row_wins_over_what_is_told(tmp_path: Path, column: str, language: str) -> None:
    rows = [{"about": "She bakes bread in a village.", "lang": column}]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    mapping = "{description: about, language: lang}"
    context = FakeContext(PERSONAS, f"personas.sources=[{{pool: p, reader: mapped, path: {path}, mapping: {mapping}}}]")
    (row,) = rows_of(PERSONAS.prepare(context).rows["persona_candidates"])
    assert row.language == language  # type: ignore[attr-defined]


def test_what_models_wrote_in_another_language_is_compared_by_its_characters() -> None:
    texts = {str(number): text for number, text in enumerate([*ALL, f"{ALL[0]}!"])}
    found = find_duplicates("scenes", texts, "en", SamenessEncoder(), NearSection(cosine=0.85, jaccard=0.6), 1)
    assert [{each.row_id, each.duplicate_of} for each in found] == [{"0", str(len(ALL))}]
    assert found[0].method == "minhash"


def test_dialogues_in_languages_without_prompts_are_left_out_by_name(tmp_path: Path) -> None:
    german = ["Kommst du morgen mit in den Garten?", "Nein, ich muss leider arbeiten.", "Schade, dann am Sonntag."]
    english = ["Will you come to the garden tomorrow?", "No, I have to work.", "Then on Sunday."]
    rows = [{"dialogue": german}, {"dialogue": english}, {"dialogue": german[::-1], "language": "English"}]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    context = FakeContext(SCENES, f"scenes.sources=[{{corpus: c, reader: jsonl, path: {path}}}]")
    made = SCENES.prepare(context)
    assert made.accounting.filtered["language"] == 1 and made.accounting.n_failed == 0
    (reject,) = rows_of(made.rows["rejects"])
    assert "found a text in German" in reject.reason  # type: ignore[attr-defined]


def _personas(folder: Path, texts: Sequence[str], more: str) -> tuple[FakeContext, Any]:
    """What becomes of some texts; the rows last as long as the context."""
    rows: list[Any] = [{"uid": str(number), "about": text} for number, text in enumerate(texts)]
    path = write_jsonl(folder / "rows.jsonl", rows)
    mapping = "{source_key: uid, description: about}"
    source = f"{{pool: p, reader: mapped, path: {path}, mapping: {mapping}{more}}}"
    context = FakeContext(PERSONAS, f"personas.sources=[{source}]", "personas.pool_size=50", encoder=SamenessEncoder())
    made = PERSONAS.prepare(context)
    made.accounting.check("personas")
    return context, made


def _utterances(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line, strict=False)
        yield from row if isinstance(row, list) else row["dialogue"]
