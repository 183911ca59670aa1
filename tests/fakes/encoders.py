"""Encoders for tests: real ones of a few thousand random weights.

They lie in folders as sentence-transformers writes them (tokenizer, network, pooling, normalising); their vectors
mean nothing. One is of MiniLM's kind, one of the multilingual kind, which has another tokenizer, other special pieces
and numbers places otherwise. What they are made with is imported when one is written: it takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORDS = ["the", "a", "person", "likes", "long", "walks", "tea", "river", "works", "as", "nurse", "old", "town", "every"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,!?他在医院工作多年喜欢喝茶散步河边يعملفيمستشفىصغ"
DIMENSIONS = 32
PIECES = 48


def write_encoder(folder: Path, *, pooling: str = "mean", seed: int = 0) -> Path:
    """The folder, which reads `PIECES` pieces and gives vectors of `DIMENSIONS`."""
    import torch
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    letters = list(dict.fromkeys(LETTERS))
    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(known))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    torch.manual_seed(seed)
    shape = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    folder.mkdir(parents=True)
    BertModel(shape).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    _write_around(folder, tokenizer, "BertTokenizerFast", pooling)
    return folder


def write_multilingual(folder: Path, texts: Sequence[str], *, seed: int = 0) -> Path:
    """The folder of an XLM-RoBERTa whose pieces are learned from `texts`, in any languages."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import XLMRobertaConfig, XLMRobertaModel

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=[*special, "<mask>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    torch.manual_seed(seed)
    shape = XLMRobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64 + 2,
        initializer_range=0.3,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    folder.mkdir(parents=True)
    XLMRobertaModel(shape).save_pretrained(folder)
    _write_around(folder, tokenizer, "XLMRobertaTokenizerFast", "mean")
    return folder


def _write_around(folder: Path, tokenizer: Tokenizer, kind: str, pooling: str) -> None:
    """What stands beside the network: the tokenizer, and the modules after it."""
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(folder / "tokenizer_config.json", {"tokenizer_class": kind, "model_max_length": PIECES})
    _write(folder / "sentence_bert_config.json", {"max_seq_length": PIECES, "do_lower_case": False})
    _write(folder / "modules.json", [_module(0, "", "Transformer"), _module(1, "1_Pooling", "Pooling")])
    modes = {f"pooling_mode_{mode}": mode == f"{pooling}_tokens" for mode in ("mean_tokens", "max_tokens")}
    (folder / "1_Pooling").mkdir()
    _write(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": DIMENSIONS, **modes, "pooling_mode_cls_token": pooling == "cls"},
    )


def _module(number: int, path: str, kind: str) -> dict[str, object]:
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
