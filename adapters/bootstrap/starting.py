"""From settings to what can be told to be wrong with them before an engine is asked for."""

import logging
import socket
from contextlib import AbstractContextManager, nullcontext

from adapters.bootstrap.addresses import adopt, bind
from adapters.bootstrap.gguf import loaded_gguf
from adapters.bootstrap.models import Model, load_model
from adapters.bootstrap.stopping import ignore_being_told
from adapters.inbound.cli.settings import FrontendSettings, RenderSettings, ServeSettings

logger = logging.getLogger("northbound")

Settings = ServeSettings | RenderSettings | FrontendSettings


def start(settings: Settings) -> int:
    """Start a server, and serve until its end; gives the exit status.

    The address is bound before anything that takes time, and the model's files are read before any engine starts, so
    that what is wrong with either is told at once. Raises CannotListen, ModelNotLoadable, EngineFailure,
    ModuleNotLoaded.
    """
    with _listening_socket(settings) as bound, _loaded_model(settings) as model:
        logger.debug("loaded the tokenizer of %s", model.root)
        # what a thread still makes of the tokenizer takes about as long as this
        from adapters.bootstrap.serving import serve

        status = serve(settings, model, bound)
    ignore_being_told()
    return status


def _loaded_model(settings: Settings) -> AbstractContextManager[Model]:
    if runs_model(settings):
        return loaded_gguf(settings.model)
    return nullcontext(load_model(settings.model))


def runs_model(settings: Settings) -> bool:
    """Whether the model runs in this process, started by hand."""
    return isinstance(settings, ServeSettings) and settings.engine == "llamacpp"


def _listening_socket(settings: Settings) -> socket.socket:
    if isinstance(settings, FrontendSettings):
        return adopt(settings.listen_fd)
    return bind(settings.http.host, settings.http.port, settings.http.uds)
