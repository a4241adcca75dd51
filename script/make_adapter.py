"""Writes a small random LoRA adapter for a model folder, in peft's layout: the same each time, and no good at anything.

Its weights are large enough for greedy answers to be others, and small enough for them to stay text.

usage: make_adapter.py MODEL FOLDER
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

RANK = 8
ALPHA = 16
MODULES = ("q_proj", "v_proj")
SCALE = 0.05
"""Standard deviation of each weight."""


def weights(model: dict[str, int]) -> dict[str, torch.Tensor]:
    """Of each layer's modules, by peft's names."""
    generator = torch.Generator().manual_seed(1)
    outputs = {"q_proj": model["num_attention_heads"], "v_proj": model["num_key_value_heads"]}

    def drawn(*shape: int) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) * SCALE).to(torch.bfloat16)

    tensors = {}
    for layer in range(model["num_hidden_layers"]):
        for module in MODULES:
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{name}.lora_A.weight"] = drawn(RANK, model["hidden_size"])
            tensors[f"{name}.lora_B.weight"] = drawn(outputs[module] * model["head_dim"], RANK)
    return tensors


def main() -> None:
    model, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": MODULES,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(weights(json.loads((model / "config.json").read_text())), folder / "adapter_model.safetensors")


if __name__ == "__main__":
    main()
