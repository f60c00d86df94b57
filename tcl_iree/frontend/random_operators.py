"""Operators of random sizes in one module, side by side: more shapes to learn from than networks have.

Each operator has inputs of its own, so that IREE forms its dispatches as if it stood alone. Sizes are drawn evenly on a
logarithmic scale; half of them are rounded as networks' sizes are, half are not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Operator = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of tensors, or a module, and its inputs."""


class _Draw(Random):
    """Random sizes, of operators with at most so many multiply-adds."""

    def __init__(self, seed: int, most_work: int) -> None:
        super().__init__(seed)
        self.most_work = most_work
        self._reach = (most_work / 150e6) ** (1 / 3)

    def size(self, low: int, high: int) -> int:
        """From `low` to `high`; larger ones where more work is allowed."""
        low, high = round(low * self._reach), round(high * self._reach)
        size = low * (high / low) ** self.random()
        step = self.choice((1, 1, 8, 16, 32))
        return max(low, min(high, round(size / step) * step or step))

    def sizes(self, *bounds: tuple[int, int]) -> list[int]:
        """Sizes whose product is not too much work."""
        while True:
            sizes = [self.size(*bound) for bound in bounds]
            if prod(sizes) <= self.most_work:
                return sizes


def random_operators(
    seed: int, count: int = 24, most_work: int = 150_000_000, narrow: bool = False
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A module that applies `count` operators, and example inputs; the same seed gives the same.

    Args:
        most_work: multiply-adds of one operator; with the default, none takes IREE's own code long.
        narrow: operators on f16 and i8 instead of f32.
    """
    import torch

    random = _Draw(seed, most_work)
    torch.manual_seed(seed)
    makers = [maker for maker, share in (_NARROW_MAKERS if narrow else _MAKERS) for _ in range(share)]
    made = [random.choice(makers)(random) for _ in range(count)]
    inputs = tuple(tensor for _, tensors in made for tensor in tensors)

    class Operators(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.operators = torch.nn.ModuleList(_module(operator) for operator, _ in made)

        def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            results, at = [], 0
            for operator, (_, tensors) in zip(self.operators, made, strict=True):
                results.append(operator(*given[at : at + len(tensors)]))
                at += len(tensors)
            return tuple(results)

    return Operators().eval(), inputs


def _module(operator: Callable[..., Any]) -> Any:
    import torch

    class Function(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return operator(*inputs)

    return operator if isinstance(operator, torch.nn.Module) else Function()


def _linear(random: _Draw) -> Operator:
    import torch

    m, n, k = random.sizes((8, 512), (16, 2048), (16, 2048))
    after = random.choice((torch.nn.Identity(), torch.nn.ReLU(), torch.nn.GELU(), torch.nn.SiLU()))
    layer = torch.nn.Linear(k, n, bias=random.random() < 0.7)
    return torch.nn.Sequential(layer, after), (torch.randn(m, k),)


def _vector(random: _Draw) -> Operator:
    import torch

    n, k = random.sizes((128, 4096), (128, 4096))
    return torch.matmul, (torch.randn(1, k), torch.randn(k, n))


def _matmul(random: _Draw) -> Operator:
    import torch

    m, n, k = random.sizes((16, 768), (16, 768), (16, 768))
    return torch.matmul, (torch.randn(m, k), torch.randn(k, n))


def _batch(random: _Draw) -> Operator:
    import torch

    b, m, n, k = random.sizes((2, 16), (16, 256), (16, 256), (16, 256))
    left, right = torch.randn(b, m, k), torch.randn(b, k, n)
    if random.random() < 0.5:
        return lambda one, other: one @ other.transpose(1, 2), (left, right.transpose(1, 2).contiguous())
    return torch.bmm, (left, right)


def _attention(random: _Draw) -> Operator:
    import torch

    heads, rows, depth = random.choice((2, 4, 6, 8)), random.size(16, 192), random.choice((16, 32, 48, 64))
    given = tuple(torch.randn(1, heads, rows, depth) for _ in range(3))
    return torch.nn.functional.scaled_dot_product_attention, given


def _convolution(random: _Draw) -> Operator:
    import torch

    kernel, stride = random.choice((1, 1, 3, 3, 5, 7)), random.choice((1, 1, 2))
    while True:
        size, taken, given = random.size(7, 96), random.size(3, 512), random.size(8, 512)
        if taken * given * (size // stride) ** 2 * kernel**2 <= random.most_work:
            break
    return _block(torch.nn.Conv2d(taken, given, kernel, stride, kernel // 2, bias=False), given, taken, size, random)


def _depthwise(random: _Draw) -> Operator:
    import torch

    kernel, stride, channels = random.choice((3, 3, 5, 7)), random.choice((1, 2)), random.size(16, 512)
    size = random.size(7, 96)
    layer = torch.nn.Conv2d(channels, channels, kernel, stride, kernel // 2, groups=channels, bias=False)
    return _block(layer, channels, channels, size, random)


def _block(layer: Any, given: int, taken: int, size: int, random: _Draw) -> Operator:
    """A convolution as networks have it: with a batch norm and an activation more often than not."""
    import torch

    after: list[Any] = []
    if random.random() < 0.8:
        norm = torch.nn.BatchNorm2d(given)
        norm.running_mean.normal_(0.0, 0.1)
        norm.running_var.uniform_(0.8, 1.2)
        after = [norm, random.choice((torch.nn.Identity(), torch.nn.ReLU(), torch.nn.ReLU6(), torch.nn.SiLU()))]
    return torch.nn.Sequential(layer, *after), (torch.randn(1, taken, size, size),)


def _softmax(random: _Draw) -> Operator:
    import torch

    rows, columns = random.sizes((32, 4096), (16, 1024))
    return lambda given: torch.softmax(given, -1), (torch.randn(rows, columns),)


def _norm(random: _Draw) -> Operator:
    import torch

    rows, columns = random.size(16, 1024), random.size(32, 2048)
    return torch.nn.LayerNorm(columns), (torch.randn(rows, columns),)


def _sum(random: _Draw) -> Operator:
    import torch

    rows, columns = random.size(16, 1024), random.size(32, 2048)
    axis = random.choice((0, 1))
    return lambda given: torch.sum(given, axis), (torch.randn(rows, columns),)


def _elementwise(random: _Draw) -> Operator:
    import torch

    rows, columns = random.size(16, 1024), random.size(32, 2048)
    chosen = random.choice((torch.nn.functional.gelu, torch.tanh, lambda given: given.transpose(0, 1).contiguous()))
    return chosen, (torch.randn(rows, columns),)


def _pool(random: _Draw) -> Operator:
    import torch

    channels, size, kernel = random.size(16, 256), random.size(14, 112), random.choice((2, 3))
    layer = random.choice((torch.nn.MaxPool2d, torch.nn.AvgPool2d))
    return layer(kernel, random.choice((1, 2)), 0), (torch.randn(1, channels, size, size),)


_MAKERS: tuple[tuple[Callable[[_Draw], Operator], int], ...] = (
    (_linear, 5), (_matmul, 4), (_batch, 3), (_vector, 1), (_attention, 2), (_convolution, 7), (_depthwise, 2),
    (_softmax, 1), (_norm, 1), (_sum, 1), (_elementwise, 1), (_pool, 1),
)  # fmt: skip


def _half(maker: Callable[[_Draw], Operator]) -> Callable[[_Draw], Operator]:
    """The same operator on f16."""

    def made(random: _Draw) -> Operator:
        import torch

        operator, inputs = maker(random)
        halved = operator.half() if isinstance(operator, torch.nn.Module) else operator
        return halved, tuple(tensor.half() for tensor in inputs)

    return made


def _bytes(random: _Draw) -> Operator:
    """A product of i8 in i32."""
    import torch

    m, n, k = random.sizes((24, 768), (16, 768), (16, 768))
    given = tuple(torch.randint(-8, 8, shape, dtype=torch.int8) for shape in ((m, k), (k, n)))
    return torch._int_mm, given


_NARROW_MAKERS: tuple[tuple[Callable[[_Draw], Operator], int], ...] = (
    (_half(_linear), 3), (_half(_matmul), 3), (_half(_batch), 2), (_half(_convolution), 2), (_half(_norm), 1),
    (_bytes, 5),
)  # fmt: skip
