"""Real architectures with random weights, built from transformers' Config classes: nothing is downloaded.

Default initialisation can make a deep network ignore its input (MobileNetV2's does), which would turn every
output check into a formality. So weights here are scaled to keep activations alive and batch norms have
random statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcl_iree.errors import ModelError

Built = tuple[Any, tuple[Any, ...]]


def build(name: str) -> Built:
    """The torch module and example inputs of a bundled architecture.

    Raises:
        ModelError: unknown name, or transformers is not installed.
    """
    if name not in NETWORKS:
        raise ModelError(f"no network {name!r} in the zoo; it has {', '.join(NETWORKS)}")
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise ModelError("the zoo needs transformers: pip install 'tcl-iree[models]'") from None
    return NETWORKS[name]()


def bert_base(sequence: int = 128) -> Built:
    """BERT-base encoder."""
    import torch
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(), add_pooling_layer=False)
    ids = torch.randint(0, 30000, (1, sequence), generator=_generator())
    mask = torch.zeros(1, 1, sequence, sequence)
    return _wrap(model, lambda net, ids, mask: net(input_ids=ids, attention_mask=mask).last_hidden_state), (
        ids,
        mask,
    )


def gpt2_small(sequence: int = 64) -> Built:
    """GPT-2 small without its language-model head."""
    import torch
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(use_cache=False))
    ids = torch.randint(0, 50000, (1, sequence), generator=_generator())
    mask = torch.full((sequence, sequence), -1e4).triu(1)[None, None]
    return _wrap(model, lambda net, ids, mask: net(input_ids=ids, attention_mask=mask).last_hidden_state), (
        ids,
        mask,
    )


def resnet50(size: int = 224) -> Built:
    """ResNet-50 up to its pooled features."""
    from transformers import ResNetConfig, ResNetModel

    return _wrap(ResNetModel(ResNetConfig()), lambda net, image: net(image).pooler_output), (_image(size),)


def mobilenet_v2(size: int = 224) -> Built:
    """MobileNetV2 up to its pooled features."""
    from transformers import MobileNetV2Config, MobileNetV2Model

    return _wrap(MobileNetV2Model(MobileNetV2Config()), lambda net, image: net(image).pooler_output), (_image(size),)


NETWORKS: dict[str, Callable[[], Built]] = {
    "bert-base": bert_base,
    "gpt2-small": gpt2_small,
    "resnet-50": resnet50,
    "mobilenet-v2": mobilenet_v2,
}


def _generator() -> Any:
    import torch

    return torch.Generator().manual_seed(0)


def _image(size: int) -> Any:
    import torch

    return torch.randn(1, 3, size, size, generator=_generator())


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
