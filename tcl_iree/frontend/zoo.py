"""Real architectures with random weights, built from transformers' Config classes: nothing is downloaded.

Default initialisation can make a deep network ignore its input (MobileNetV2's does), which would turn every
output check into a formality. So weights here are scaled to keep activations alive and batch norms have
random statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tcl_iree.errors import ModelError
from tcl_iree.frontend.random_operators import random_operators

Built = tuple[Any, tuple[Any, ...]]


def build(name: str) -> Built:
    """The torch module and example inputs of a bundled architecture; the same weights every time.

    Raises:
        ModelError: unknown name, or transformers is not installed.
    """
    if name not in NETWORKS:
        raise ModelError(f"no network {name!r} in the zoo; it has {', '.join(NETWORKS)}")
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise ModelError("the zoo needs transformers: pip install 'tcl-iree[models]'") from None
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return NETWORKS[name]()


def _encoder(sequence: int, batch: int = 1, **config: Any) -> Built:
    """A BERT, with a mask as its second input."""
    import torch
    from transformers import BertConfig, BertModel

    made = BertConfig(**config)
    model = BertModel(made, add_pooling_layer=False)
    ids = torch.randint(0, made.vocab_size, (batch, sequence), generator=_generator())
    mask = torch.zeros(batch, 1, sequence, sequence)
    return _wrap(model, lambda net, ids, mask: net(input_ids=ids, attention_mask=mask).last_hidden_state), (ids, mask)


def _decoder(sequence: int, **config: Any) -> Built:
    """A GPT-2 without its language-model head."""
    import torch
    from transformers import GPT2Config, GPT2Model

    made = GPT2Config(use_cache=False, **config)
    ids = torch.randint(0, made.vocab_size, (1, sequence), generator=_generator())
    mask = torch.full((sequence, sequence), -1e4).triu(1)[None, None]
    network = _wrap(GPT2Model(made), lambda net, ids, mask: net(input_ids=ids, attention_mask=mask).last_hidden_state)
    return network, (ids, mask)


def _vision(family: str, size: int, output: str = "pooler_output", batch: int = 1, **config: Any) -> Built:
    """A network over images, up to their features."""
    import torch
    import transformers

    made = getattr(transformers, f"{family}Config")(**config)
    model = getattr(transformers, f"{family}Model")(made)
    image = torch.randn(batch, 3, size, size, generator=_generator())
    return _wrap(model, lambda net, image: getattr(net(image), output)), (image,)


def _patches(size: int, **config: Any) -> Built:
    """A vision transformer."""
    return _vision("ViT", size, "last_hidden_state", image_size=size, **config)


def _listener(frames: int, **config: Any) -> Built:
    """The encoder of a Whisper, over the spectrum of a sound."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    made = WhisperConfig(max_source_positions=frames // 2, **config)
    spectrum = torch.randn(1, made.num_mel_bins, frames, generator=_generator())
    return _wrap(WhisperEncoder(made), lambda net, spectrum: net(spectrum).last_hidden_state), (spectrum,)


# Layers of a transformer are alike: where only its dispatches matter, two of them have them all.
NETWORKS: dict[str, Callable[[], Built]] = {
    "bert-base": lambda: _encoder(128),
    "gpt2-small": lambda: _decoder(64),
    "resnet-50": lambda: _vision("ResNet", 224),
    "mobilenet-v2": lambda: _vision("MobileNetV2", 224),
    "vit-base": lambda: _patches(224),
    "bert-mini": lambda: _encoder(
        64, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024
    ),
    "bert-small": lambda: _encoder(
        112, hidden_size=512, num_hidden_layers=2, num_attention_heads=8, intermediate_size=2048
    ),
    "bert-large": lambda: _encoder(
        48, hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, intermediate_size=4096
    ),
    "gpt2-tiny": lambda: _decoder(100, n_embd=384, n_head=6, n_layer=2),
    "deit-small": lambda: _patches(
        160, hidden_size=384, num_hidden_layers=2, num_attention_heads=6, intermediate_size=1536
    ),
    "resnet-18": lambda: _vision(
        "ResNet", 192, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic"
    ),
    "regnet-y": lambda: _vision(
        "RegNet", 208, hidden_sizes=[48, 104, 208, 440], depths=[1, 3, 6, 6], groups_width=8, layer_type="y"
    ),
    "convnext-tiny": lambda: _vision("ConvNext", 192),
    "mobilenet-v1": lambda: _vision("MobileNetV1", 192),
    "efficientnet-b0": lambda: _vision(
        "EfficientNet", 176, "last_hidden_state", width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280
    ),
    "segformer-b0": lambda: _vision("Segformer", 160, "last_hidden_state"),
    "poolformer": lambda: _vision("PoolFormer", 160, "last_hidden_state"),
    "whisper-tiny": lambda: _listener(320, encoder_layers=2),
    "bert-mini-batch-4": lambda: _encoder(
        80, 4, hidden_size=320, num_hidden_layers=2, num_attention_heads=5, intermediate_size=1280
    ),
    "resnet-18-batch-4": lambda: _vision(
        "ResNet", 128, batch=4, hidden_sizes=[48, 96, 192, 384], depths=[1, 1, 1, 1], layer_type="basic"
    ),
    "mobilenet-v2-batch-2": lambda: _vision("MobileNetV2", 144, batch=2, depth_multiplier=0.75),
    **{f"random-operators-{seed}": partial(random_operators, seed) for seed in range(8)},
    **{f"large-operators-{seed}": partial(random_operators, 100 + seed, 16, 1_200_000_000) for seed in range(8)},
    **{f"narrow-operators-{seed}": partial(random_operators, 200 + seed, narrow=True) for seed in range(4)},
}


def _generator() -> Any:
    import torch

    return torch.Generator().manual_seed(0)


def _wrap(model: Any, forward: Callable[..., Any]) -> Any:
    """A module that returns one tensor, with weights that let the input through."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return forward(self.model, *inputs)

    generator = _generator()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                fan_in = module.weight[0].numel()
                module.weight.normal_(0.0, (2.0 / fan_in) ** 0.5, generator=generator)
            elif isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0.0, 0.1, generator=generator)
                module.running_var.uniform_(0.8, 1.2, generator=generator)
                module.weight.uniform_(0.8, 1.2, generator=generator)
                module.bias.normal_(0.0, 0.1, generator=generator)
    return Network().eval()
