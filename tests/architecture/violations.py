"""For every import contract, at least one line that breaks it and no other."""

from typing import NamedTuple


class Violation(NamedTuple):
    """A line of source added to a module."""

    contract_id: str
    module: str
    source: str

    def __str__(self) -> str:
        return f"{self.contract_id}: {self.module}: {self.source or 'a package of its own'}"


OPENAI = "adapters/inbound/http/openai"
VLLM = "adapters/inbound/http/vllm"

VIOLATIONS = [
    Violation("layers", "domain/errors.py", "import application.ports.metrics"),
    Violation("layers", "application/options.py", "import application.ports.tokenizer"),
    Violation("layers", "application/model.py", "import application.requests"),
    Violation("adapters", "adapters/sideways/__init__.py", ""),
    Violation("core-is-pure", "domain/errors.py", "import numpy"),
    Violation("core-is-pure", "application/requests.py", "from transformers import AutoTokenizer"),
    Violation("litestar-is-inbound", "adapters/outbound/prometheus/metrics.py", "import litestar"),
    Violation("litestar-is-inbound", "adapters/inbound/cli/__init__.py", "import uvicorn"),
    Violation("litestar-is-inbound", "adapters/inbound/cli/__init__.py", "import adapters.inbound.http.sse"),
    Violation("container-is-bootstrap", "adapters/inbound/http/errors.py", "import dependency_injector"),
    Violation("zmq-is-vllm", "adapters/outbound/mock_engine/engine.py", "import zmq"),
    Violation("zmq-is-vllm", "adapters/bootstrap/app.py", "import zmq.asyncio"),
    Violation(
        "outbound-independent",
        "adapters/outbound/mock_engine/engine.py",
        "import adapters.outbound.byte_tokenizer.tokenizer",
    ),
    Violation("services-protected", "adapters/outbound/prometheus/metrics.py", "import application.services.models"),
    Violation("preparing-knows-no-server-option", "application/services/render.py", "import application.options"),
    Violation(
        "preparing-knows-no-server-option", "application/services/prepare.py", "import application.services.response"
    ),
    *[
        Violation("preparing-knows-no-server-option", f"{OPENAI}/{endpoint}/lower.py", source)
        for endpoint in ("chat", "completions")
        for source in ("import application.options", "import application.services.generation")
    ],
    *[
        Violation("preparing-knows-no-server-option", f"{VLLM}/{part}/lower.py", "import application.services.response")
        for part in ("derender", "generate", "tokenize")
    ],
    Violation("no-engine-in-process", "adapters/outbound/vllm_engine/wire.py", "import vllm.v1.engine"),
    Violation("no-engine-in-process", "adapters/outbound/vllm_engine/tensors.py", "import torch"),
]
