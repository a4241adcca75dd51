"""The form of an output as a grammar of llama.cpp's."""

import re
from typing import Any, Final

from adapters.outbound.llamacpp_engine.library import load_library
from domain.errors import RequestError
from domain.structured_outputs import Choice, Grammar, JsonObject, JsonSchema, StructuredOutputs

_LARK: Final = re.compile(r"^\s*\??\w+\s*:(?!:=)", re.MULTILINE)
"""How a rule begins in Lark; in the notation that llama.cpp reads it is `name ::=`."""

_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"\\]')


class FormNotSupported(RequestError):
    """This engine cannot hold an output to that form."""


def grammar_of(structured: StructuredOutputs) -> str:
    """Raises FormNotSupported. Whether llama.cpp takes the grammar, it tells when it reads it."""
    _check_options(structured)
    match structured.form:
        case JsonSchema(schema):
            return _schema_grammar(schema, structured.param)
        case JsonObject():
            return _schema_grammar({"type": "object"}, structured.param)
        case Choice(options):
            return "root ::= " + " | ".join(map(_literal, options))
        case Grammar(rules) if not _LARK.search(rules):
            return rules
    kind = "a Lark grammar" if isinstance(structured.form, Grammar) else _name(structured.form)
    raise _refused(structured.param, f"{kind} is not supported by the llama.cpp engine.")


def _check_options(structured: StructuredOutputs) -> None:
    for option in ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"):
        if getattr(structured, option):
            raise _refused(structured.param, f"{option} is not supported by the llama.cpp engine.")


def _schema_grammar(schema: Any, param: str) -> str:
    try:
        grammar: str = load_library().json_schema_to_grammar(schema)
    except Exception as error:  # whatever it stumbles over in a schema, the schema has it
        raise _refused(param, f"the JSON schema cannot be made a grammar: {str(error)[:200]}") from error
    return grammar


def _literal(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02X}", text) + '"'


def _name(form: Any) -> str:
    return re.sub("(?<!^)(?=[A-Z])", " ", type(form).__name__).lower()


def _refused(param: str, reason: str) -> FormNotSupported:
    return FormNotSupported(f"{param}: {reason}", param)
