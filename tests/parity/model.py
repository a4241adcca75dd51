"""A model folder without weights: all that a frontend reads of a model, made by these lines alone."""

from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from tests.fakes.tokenizers import write_model_folder

NAME = "small"
"""The served model name."""

BEGIN, START, END = SPECIALS = ("<|begin|>", "<|im_start|>", "<|im_end|>")
_WORDS = (
    "system user assistant documents effort thinking style tone a and as at big bird by cat dog for fox in is it log "
    "mat not of on one or red sang sat saw sea see so sun that the this to two was we who yes you The A I Is We Yes No "
    "one two 1 2 3 4 5 6 7 8 9"
)
WORDS = _WORDS.split()
"""Each a token, behind a space and without one."""
TEMPLATE = """\
{%- if documents %}<|im_start|>documents
{% for document in documents %}{{ document.title }}: {{ document.text }} {% endfor %}<|im_end|>
{% endif %}
{%- if reasoning_effort %}<|im_start|>effort {{ reasoning_effort }}<|im_end|>
{% endif %}
{%- if enable_thinking is defined %}<|im_start|>thinking {{ enable_thinking }}<|im_end|>
{% endif %}
{%- if style %}<|im_start|>style {{ style }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def tokenizer() -> Tokenizer:
    """Byte-level BPE: a token for each byte, each word and the two bytes that most emoji begin with; a text begins with
    a special token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("ð", "Ł")]
    for word in [*(f"Ġ{word}" for word in WORDS), *WORDS]:
        prefixes = [word[: length + 1] for length in range(len(word))]
        merges += [(shorter, longer[-1]) for shorter, longer in pairwise(prefixes)]
    merges = list(dict.fromkeys(merges))
    entries = [*SPECIALS, *alphabet, *dict.fromkeys("".join(pair) for pair in merges)]
    library = Tokenizer(models.BPE({entry: index for index, entry in enumerate(entries)}, merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(list(SPECIALS))
    library.post_processor = processors.TemplateProcessing(f"{BEGIN} $A", special_tokens=[(BEGIN, 0)])
    return library


def write_model(path: Path) -> Path:
    """The folder, which both frontends read."""
    library = tokenizer()
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = {**sizes, "num_key_value_heads": 1, "vocab_size": library.get_vocab_size()}
    return write_model_folder(path, library, chat_template=TEMPLATE, eos_token=END, config=config)
