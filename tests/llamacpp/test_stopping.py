"""A server with llama.cpp in its process stops as quietly as any other."""

import re
import signal
import subprocess
import sys

from adapters.outbound.llamacpp_engine.model import GgufModel
from tests.patience import PATIENCE_S

NORTHBOUND = "import sys; from adapters.bootstrap.__main__ import main; sys.exit(main())"
"""What the command of that name runs."""


def test_nothing_is_said_of_what_was_left_behind(model: GgufModel) -> None:
    command = [sys.executable, "-c", NORTHBOUND, "serve", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if "try it:" in line:
                break
        server.send_signal(signal.SIGTERM)
        _, rest = server.communicate(timeout=PATIENCE_S)

    assert server.returncode == 0, said
    assert [line for line in rest.splitlines() if not re.match(r"(INFO|WARNING) ", line)] == []
