"""`northbound render`: a model's tokenizer and templates, with no engine."""

from collections.abc import Mapping, Sequence

from adapters.inbound.cli.command_flags import RENDER
from adapters.inbound.cli.commands import render_parser
from adapters.inbound.cli.environment import refuse_unbuilt, stand_ins
from adapters.inbound.cli.serve import model_and_rest, read_known, split_at_model
from adapters.inbound.cli.settings import RenderSettings
from adapters.inbound.cli.shared import http_settings, model_settings
from adapters.inbound.cli.usage import UsageError


def read_render(words: Sequence[str], environ: Mapping[str, str]) -> RenderSettings:
    """Raises UsageError."""
    model, words = split_at_model(list(words))
    parser = render_parser()
    given, rest = read_known(parser, words)
    model, rest = model_and_rest(model, given, rest)
    if rest:
        name = rest[0].partition("=")[0]
        raise UsageError(f"{name}: there is no engine here to give it to{parser.perhaps(name)}")
    if model is None:
        raise UsageError("no MODEL: it comes first, as in `northbound render MODEL`")
    refuse_unbuilt(environ)
    values = stand_ins(RENDER, environ) | given
    return RenderSettings(http=http_settings(values), model=model_settings(values, model, model))
