"""The adapters that a server has from its start."""

import asyncio
import logging
from collections.abc import Sequence

from adapters.inbound.cli.settings import LoraModule
from application.services.lora import LoraAdapters
from domain.errors import EngineFailure, RequestError

logger = logging.getLogger("northbound")


class ModuleNotLoaded(Exception):
    """An adapter that the command line names cannot be served."""


async def load_modules(adapters: LoraAdapters, modules: Sequence[LoraModule], seconds: float) -> None:
    """One after the other, each in so many seconds. Raises ModuleNotLoaded for the first that cannot be."""
    for module in modules:
        try:
            async with asyncio.timeout(seconds):
                await adapters.load(
                    module.name,
                    module.path,
                    base_model_name=module.base_model_name,
                    is_3d=module.is_3d_lora_weight,
                )
        except TimeoutError:
            raise ModuleNotLoaded(f"--lora-modules: {module.name} was not loaded within {seconds:g} s") from None
        except (RequestError, EngineFailure) as failure:
            said = " ".join(str(failure).split())  # an engine may say it in lines
            raise ModuleNotLoaded(f"--lora-modules: {module.name}={module.path}: {said}") from failure
        logger.info("loaded adapter %s from %s", module.name, module.path)
