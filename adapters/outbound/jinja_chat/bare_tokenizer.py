"""What transformers needs of a tokenizer to run a chat template, for models that have none of transformers' own."""

from typing import Any

from adapters.outbound.jinja_chat.renderer import TemplateTokenizer


def bare_tokenizer(chat_template: str | None, *, bos_token: str | None, eos_token: str | None) -> TemplateTokenizer:
    """It has a template and names of special tokens, which templates write, and no vocabulary."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    fast: Any = PreTrainedTokenizerFast
    tokenizer: TemplateTokenizer = fast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.BPE()),
        chat_template=chat_template,
        bos_token=bos_token,
        eos_token=eos_token,
    )
    return tokenizer
