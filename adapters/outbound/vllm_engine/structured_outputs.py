"""The form of an output, as the engine core is told of it."""

import json
from typing import Final

from adapters.outbound.vllm_engine.grammar_backends import Backend, backend_for
from adapters.outbound.vllm_engine.wire import EngineStructuredOutputs
from domain.structured_outputs import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)

_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in [*map(chr, range(32)), "\x7f"]} | str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def choice_grammar(choice: Choice) -> str:
    """The options as an EBNF grammar, which is how xgrammar is told of them."""
    return "root ::= " + " | ".join([f'"{option.translate(_ESCAPES)}"' for option in choice.options])


def engine_structured_outputs(structured: StructuredOutputs | None, backend: Backend) -> EngineStructuredOutputs | None:
    if structured is None:
        return None
    library = backend_for(structured, backend)
    asked = EngineStructuredOutputs(
        disable_any_whitespace=structured.disable_any_whitespace,
        disable_additional_properties=structured.disable_additional_properties,
        whitespace_pattern=structured.whitespace_pattern,
        backend=library,
        backend_was_auto=backend == "auto",
    )
    # A schema goes as text, which is what the engine makes of it anyway: text holds numbers of any size.
    match structured.form:
        case JsonSchema(schema):
            asked.json = json.dumps(schema)
        case JsonObject():
            asked.json_object = True
        case Regex(pattern):
            asked.regex = pattern
        case Choice(options) as choice:
            if library == "xgrammar":
                asked.grammar = choice_grammar(choice)
            else:
                asked.choice = options
        case Grammar(rules):
            asked.grammar = rules
        case StructuralTag(tag):
            asked.structural_tag = json.dumps(tag)
    return asked
