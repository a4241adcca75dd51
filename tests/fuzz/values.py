"""Values of a type as msgspec sees it, at its edges; and JSON of any kind."""

from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

Values = st.SearchStrategy[Any]

LONG = "long " * 100
INTEGERS = [0, 1, -1, 2, 3, 5, 16, 17, 20, 21, 63, 64, 65, 128, 129, 260, 261, 8192, 16385, 2**31, 2**32, 2**53 + 1]
EDGES = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, 10**400]
FLOATS = [0.0, -0.0, 1e-9, 0.01, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 2.0000001, -2.0, -0.5, 1e308, -1e308, 5e-324]
TEXTS = [
    "",
    " ",
    "x",
    "hi",
    "\0",
    "\n",
    "é",
    "🐱",
    "a b",
    "/",
    "0",
    "104",
    "-1",
    "true",
    "<|eos|>",
    "<|user|>",
    "{{ x }}",
    LONG,
]
NO_UNICODE = ["\ud83d", "a\ude00b"]

integers = st.sampled_from(INTEGERS) | st.integers(-5, 300)
floats = st.sampled_from(FLOATS) | st.floats(0, 2) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.sampled_from(TEXTS) | st.text(max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.sampled_from(EDGES),
    floats,
    st.sampled_from([float("nan"), float("inf"), 1e999]),
    texts,
    st.sampled_from(NO_UNICODE),
)
anything: Values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def of(kind: inspect.Type) -> Values:
    """Of that type, but for its limits: what is just beyond them comes too."""
    match kind:
        case inspect.Metadata():
            return of(kind.type)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            limits = [limit for limit in (kind.ge, kind.le) if limit is not None]
            return integers | st.sampled_from([*limits, *EDGES[:4]]) if limits else integers
        case inspect.FloatType():
            return floats
        case inspect.StrType():
            return texts
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.ListType():
            return st.lists(of(kind.item_type), max_size=4)
        case inspect.DictType():
            return st.dictionaries(of(kind.key_type), of(kind.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of([of(one) for one in kind.types])
        case inspect.StructType():
            return st.fixed_dictionaries(
                {field.encode_name: of(field.type) for field in kind.fields if field.required},
                optional={field.encode_name: of(field.type) for field in kind.fields if not field.required},
            )
        case inspect.AnyType():
            return anything
    raise NotImplementedError(f"no values of {kind}")  # a new type of field needs some
