"""The small files beside a model's weights, in a local folder or on the Hugging Face hub."""

import json
import logging
import re
from pathlib import Path
from typing import Any

HUB_NAME = re.compile(r"(?:[\w.-]+/)?[\w.-]+", re.ASCII)
"""`name` or `owner/name`."""


class ModelNotLoadable(Exception):
    """A model's files are missing, or are not what they should be. The message is one line, for whoever starts the
    server."""


class ModelFiles:
    """The files of one model. Those on the hub are fetched once and kept in the hub's own cache."""

    def __init__(self, name: str, revision: str | None = None) -> None:
        """`name` is a folder, or else a name on the hub; `revision` is a branch, tag or commit there.

        Raises ModelNotLoadable for what is neither."""
        self._folder = Path(name) if name and Path(name).is_dir() else None
        self.name = name
        self._revision = revision
        self._is_known = False
        if self._folder is None:
            if Path(name).is_file():
                raise ModelNotLoadable(f"{name} is a file. A model is a folder, or a name on the Hugging Face hub.")
            if name.startswith(("/", "./", "../", "~")) or not HUB_NAME.fullmatch(name):
                raise ModelNotLoadable(f"There is no folder {name or repr(name)}.")

    def find(self, filename: str) -> Path | None:
        """Where a file is on this machine now; None if the model has none of that name.

        Raises ModelNotLoadable when the hub cannot be asked or has no such model."""
        if self._folder is None:
            return self._fetch(filename)
        path = self._folder / filename
        return path if path.is_file() else None

    def read_json(self, filename: str) -> dict[str, Any] | None:
        """The object in a JSON file, None if there is no such file. Raises ModelNotLoadable if it holds none."""
        path = self.find(filename)
        if path is None:
            return None
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise ModelNotLoadable(f"{path} cannot be read: {one_line(error)}") from error
        if not isinstance(content, dict):
            raise ModelNotLoadable(f"{path} holds no JSON object.")
        return content

    def _fetch(self, filename: str) -> Path | None:
        from huggingface_hub import errors, hf_hub_download

        # it tells of each retry, twice: what came of them is told by the error
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        try:
            path = Path(hf_hub_download(self.name, filename, revision=self._revision))
        except errors.LocalEntryNotFoundError as error:
            if self._is_known:  # from the cache, so without the hub what is not there counts as missing
                return None
            raise ModelNotLoadable(
                f"There is no folder {self.name}, and the Hugging Face hub cannot be reached for a model of that name."
            ) from error
        except errors.EntryNotFoundError:
            return None
        except errors.GatedRepoError as error:
            raise ModelNotLoadable(f"{self.name} is gated on the hub: it needs a token with access.") from error
        except errors.RevisionNotFoundError as error:
            raise ModelNotLoadable(f"{self.name} has no revision {self._revision} on the hub.") from error
        except errors.RepositoryNotFoundError as error:
            raise ModelNotLoadable(f"There is no folder {self.name}, nor a model of that name on the hub.") from error
        except (OSError, ValueError) as error:
            raise ModelNotLoadable(f"{self.name} cannot be loaded from the hub: {one_line(error)}") from error
        self._is_known = True
        return path


def one_line(error: BaseException) -> str:
    """What an error says, without a line break."""
    return " ".join(str(error).split())[:300] or type(error).__name__
