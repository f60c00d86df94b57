"""A small image classifier: the bundled example of `make tune`."""

import torch


class SmallCnn(torch.nn.Module):
    """Three convolutions with batch norm, a 1x1 bottleneck, and a two-layer head."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            self._block(3, 32, stride=2),
            self._block(32, 64, stride=1),
            self._block(64, 128, stride=2),
            torch.nn.Conv2d(128, 64, 1),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(4),
        )
        self.head = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.GELU(), torch.nn.Linear(256, 100))

    @staticmethod
    def _block(inputs: int, outputs: int, stride: int) -> torch.nn.Sequential:
        return torch.nn.Sequential(
            torch.nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            torch.nn.BatchNorm2d(outputs),
            torch.nn.ReLU(),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image).flatten(1))


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return SmallCnn().eval(), (torch.randn(1, 3, 64, 64),)
