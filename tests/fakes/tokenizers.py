"""Small tokenizers of every kind that models come with, trained on the spot, and model folders to serve them from."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "Hello, world! Hello there, how are you today? I am fine, thank you.",
    "Das Mädchen läuft über die Straße, während es regnet und schneit.",
    "Un café, s'il vous plaît: déjà vu, naïve, garçon, hôtel.",
    "Привет, мир! Как дела? Всё хорошо, спасибо.",
    "你好,世界。今天天气很好,我们去公园吧。",
    "def f(x):\n    return x + 1\n\n\nprint(f(41))  # 42\n",
    "one two  three   four    five\tsix",
] * 3

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

CHATML_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SENTENCEPIECE_SPECIALS = ["<unk>", "<s>", "</s>"]
BYTE_ENTRIES = [f"<0x{byte:02X}>" for byte in range(256)]
WORD_SPECIALS = ["[UNK]", "[CLS]", "[SEP]"]


def byte_level_bpe() -> Tokenizer:
    """As GPT-2, Llama 3, Qwen and SmolLM have it: every byte has an entry, so every text can be written."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=CHATML_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def llama_bpe() -> Tokenizer:
    """As Llama 2 and Mistral have it: what the vocabulary lacks is written in byte entries; a text starts with `▁`, and
    `<s>` is added before it."""
    tokenizer = Tokenizer(_with_byte_entries(_sentencepiece_bpe()))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(SENTENCEPIECE_SPECIALS)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def gemma_bpe() -> Tokenizer:
    """As Gemma has it: nothing stands before a text, and runs of spaces are entries that are also added tokens."""
    tokenizer = Tokenizer(_with_byte_entries(_sentencepiece_bpe(), "▁▁", "▁▁▁"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(SENTENCEPIECE_SPECIALS)
    tokenizer.add_tokens([AddedToken("▁▁", normalized=False), AddedToken("▁▁▁", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def mistral_bpe() -> Tokenizer:
    """As Mistral has it now: nothing stands before a text, and the letters that byte entries are written in are
    entries too."""
    letters = sorted(set("".join(BYTE_ENTRIES)))
    tokenizer = Tokenizer(_with_byte_entries(_sentencepiece_bpe(), *letters))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(SENTENCEPIECE_SPECIALS)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def unigram() -> Tokenizer:
    """As T5 and its kin have it, with byte entries; the decoder does not know of these."""
    entries = _unigram_entries()
    entries[3:3] = [(entry, -20.0) for entry in BYTE_ENTRIES]
    return _unigram(models.Unigram(entries, unk_id=0, byte_fallback=True))


def unigram_without_bytes() -> Tokenizer:
    """As T5 itself has it: what the vocabulary lacks is `<unk>`."""
    return _unigram(models.Unigram(_unigram_entries(), unk_id=0, byte_fallback=False))


def word_piece() -> Tokenizer:
    """As BERT has it: lower case, `##` where a word goes on, and spaces between tokens that the text had or not."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=WORD_SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


def word_level() -> Tokenizer:
    """Whole words, and no decoder at all."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=WORD_SPECIALS, show_progress=False))
    return tokenizer


def end_of_word_bpe() -> Tokenizer:
    """As the first GPT has it: the last entry of a word ends with `</w>`."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=WORD_SPECIALS, end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def write_model_folder(
    path: Path,
    tokenizer: Tokenizer | None = None,
    *,
    chat_template: str | dict[str, str] | None = CHATML,
    eos_token: str = "<|im_end|>",  # noqa: S107 - not that kind of token
    config: dict[str, Any] | None = None,
    generation_config: dict[str, Any] | None = None,
) -> Path:
    """A folder as the hub's models have it, less the weights. By default byte-level BPE and ChatML.

    `config` and `generation_config` are merged into their files; a value of None takes its key out."""
    tokenizer = tokenizer or byte_level_bpe()
    eos_token_id = tokenizer.token_to_id(eos_token)
    path.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos_token}
    if isinstance(chat_template, dict):
        settings["chat_template"] = [{"name": name, "template": text} for name, text in chat_template.items()]
    elif chat_template is not None:
        (path / "chat_template.jinja").write_text(chat_template)
    _write_json(path / "tokenizer_config.json", settings)
    model = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "eos_token_id": eos_token_id,
        "max_position_embeddings": 2048,
        "vocab_size": tokenizer.get_vocab_size(),
    }
    _write_json(path / "config.json", model | (config or {}))
    _write_json(path / "generation_config.json", {"eos_token_id": eos_token_id} | (generation_config or {}))
    return path


def _unigram_entries() -> list[tuple[str, float]]:
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=SENTENCEPIECE_SPECIALS, unk_token="<unk>", show_progress=False
    )
    trained.train_from_iterator(CORPUS, trainer)
    return [(entry, score) for entry, score in json.loads(trained.to_str())["model"]["vocab"]]


def _unigram(model: models.Unigram) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(SENTENCEPIECE_SPECIALS)
    return tokenizer


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


@cache
def _sentencepiece_bpe() -> dict[str, Any]:
    """A trained BPE model with `▁` for spaces, as `tokenizer.json` has it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("▁+"), "merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=SENTENCEPIECE_SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model


def _with_byte_entries(trained: dict[str, Any], *more: str) -> models.BPE:
    """The trained model with an entry for each byte, behind the special tokens as in SentencePiece."""
    entries = sorted(trained["vocab"], key=trained["vocab"].get)
    entries[3:3] = BYTE_ENTRIES
    entries += [entry for entry in more if entry not in entries]
    merges = [(left, right) for left, right in trained["merges"]]
    return models.BPE(
        {entry: index for index, entry in enumerate(entries)},
        merges,
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
