"""The console script."""

import gc
import logging
import os
import sys
from collections.abc import Sequence

from adapters.bootstrap.addresses import CannotListen
from adapters.bootstrap.lora_modules import ModuleNotLoaded
from adapters.bootstrap.stopping import leave_when_told
from adapters.inbound.cli.parse import parse
from adapters.inbound.cli.settings import MockEngineSettings
from adapters.inbound.cli.usage import complaint
from adapters.outbound.hf_tokenizer.model_files import ModelNotLoadable
from adapters.outbound.jinja_chat.template import ChatTemplateNotLoadable
from domain.errors import EngineFailure


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of one command. What keeps it from starting is one line on standard error, and status 1."""
    settings = parse(sys.argv[1:] if argv is None else argv, os.environ)
    level = "INFO" if isinstance(settings, MockEngineSettings) else settings.http.log_level
    logging.basicConfig(level=level, format="%(levelname)-7s %(message)s")
    logging.getLogger("uvicorn").setLevel(max(logging.getLogger().level, logging.WARNING))
    leave_when_told()
    # what either imports takes long, and help needs none of it
    try:
        if isinstance(settings, MockEngineSettings):
            from adapters.bootstrap.engines import run_mock_engine

            return run_mock_engine(settings)
        gc.disable()  # until it serves: nearly all that is made before stays
        from adapters.bootstrap.starting import start

        return start(settings)
    except (CannotListen, ModelNotLoadable, ChatTemplateNotLoadable, EngineFailure, ModuleNotLoaded) as failure:
        sys.stderr.write(complaint(failure))
        return 1


if __name__ == "__main__":
    sys.exit(main())
