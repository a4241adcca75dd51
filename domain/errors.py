"""The two families of failure. A concrete error sits beside the rule that raises it."""


class RequestError(Exception):
    """The caller sent what cannot be served. The message is for the caller; `param` names the request field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class EngineFailure(Exception):
    """The engine could not do what it was asked to; nothing the caller sent is at fault."""
