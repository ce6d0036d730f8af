"""The same computations once more, in NumPy's float64: the second opinion that judges torch on the CPU.

Each returns the output and then the gradient of every input, as `differentiable` does.
"""

from __future__ import annotations

import math
from typing import Any


def product(numpy: Any, left: Any, right: Any) -> Any:
    """Return a matrix product, summed by `einsum` without a BLAS."""
    return numpy.einsum("ik,kj->ij", left, right)


def softmax(numpy: Any, x: Any, upstream: Any) -> tuple[Any, Any]:
    """Return softmax over the last axis and its gradient."""
    raised = numpy.exp(x - x.max(-1, keepdims=True))
    share = raised / raised.sum(-1, keepdims=True)
    return share, _softmax_gradient(share, upstream)


def _softmax_gradient(share: Any, upstream: Any) -> Any:
    return share * (upstream - (share * upstream).sum(-1, keepdims=True))


def layer_norm(numpy: Any, x: Any, weight: Any, bias: Any, upstream: Any) -> tuple[Any, ...]:
    """Return layer norm over the last axis (epsilon 1e-5) and the gradients of input, weight and bias."""
    centred = x - x.mean(-1, keepdims=True)
    scale = 1 / numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    normal = centred * scale
    inner = upstream * weight
    share = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
    return normal * weight + bias, share * scale, (upstream * normal).sum(0), upstream.sum(0)


def embedding(numpy: Any, tokens: Any, table: Any, upstream: Any) -> tuple[Any, Any]:
    """Return the rows of a table and the gradient of the table."""
    gradient = numpy.zeros_like(table)
    numpy.add.at(gradient, tokens.reshape(-1), upstream.reshape(-1, table.shape[1]))
    return table[tokens], gradient


def cross_entropy(numpy: Any, targets: Any, logits: Any) -> tuple[Any, Any]:
    """Return the mean cross-entropy and the gradient of the logits."""
    shifted = logits - logits.max(-1, keepdims=True)
    raised = numpy.exp(shifted)
    total = raised.sum(-1, keepdims=True)
    rows = numpy.arange(len(targets))
    loss = (numpy.log(total[:, 0]) - shifted[rows, targets]).mean()
    gradient = raised / total
    gradient[rows, targets] -= 1
    return numpy.asarray(loss), gradient / len(targets)


def conv2d(numpy: Any, x: Any, weight: Any, upstream: Any) -> tuple[Any, Any, Any]:
    """Return a convolution with padding 1 and the gradients of input and weight, window by window."""
    height, width = x.shape[2:]
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    output, of_padded, of_weight = 0.0, numpy.zeros_like(padded), numpy.zeros_like(weight)
    for row in range(weight.shape[2]):
        for column in range(weight.shape[3]):
            window = padded[:, :, row : row + height, column : column + width]
            output = output + numpy.einsum("bchw,oc->bohw", window, weight[:, :, row, column])
            of_weight[:, :, row, column] = numpy.einsum("bohw,bchw->oc", upstream, window)
            of_padded[:, :, row : row + height, column : column + width] += numpy.einsum(
                "bohw,oc->bchw", upstream, weight[:, :, row, column]
            )
    return output, of_padded[:, :, 1:-1, 1:-1], of_weight


def causal_attention(numpy: Any, query: Any, key: Any, value: Any, upstream: Any) -> tuple[Any, ...]:
    """Return causal attention and the gradients of query, key and value."""
    scale = 1 / math.sqrt(query.shape[-1])
    scores = numpy.einsum("bhqd,bhkd->bhqk", query, key) * scale
    scores[..., numpy.triu(numpy.ones(scores.shape[-2:], dtype=bool), 1)] = -numpy.inf
    raised = numpy.exp(scores - scores.max(-1, keepdims=True))
    share = raised / raised.sum(-1, keepdims=True)
    of_scores = _softmax_gradient(share, numpy.einsum("bhqd,bhkd->bhqk", upstream, value)) * scale
    return (
        numpy.einsum("bhqk,bhkd->bhqd", share, value),
        numpy.einsum("bhqk,bhkd->bhqd", of_scores, key),
        numpy.einsum("bhqk,bhqd->bhkd", of_scores, query),
        numpy.einsum("bhqk,bhqd->bhkd", share, upstream),
    )


def tanh_step(numpy: Any, inputs: Any, weight: Any, rate: float) -> tuple[Any, Any]:
    """Return the mean square of tanh(x·Wᵀ), and by how much one plain step moves the weight."""
    active = numpy.tanh(numpy.einsum("bi,oi->bo", inputs, weight))
    inner = 2 * active * (1 - active**2) / active.size
    return numpy.asarray((active**2).mean()), -rate * numpy.einsum("bo,bi->oi", inner, inputs)


def scaled_tanh(numpy: Any, x: Any, scale: Any) -> Any:
    """Return the hyperbolic tangent of a scaled root-mean-square norm."""
    return numpy.tanh(x / numpy.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale)
