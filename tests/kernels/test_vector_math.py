"""The first call of torch's vector functions is made by one thread, on one element."""

import torch
from torch.overrides import TorchFunctionMode

from engine.model.decoder import Decoder
from engine.model.tiny import tiny_model
from kernels.ops import load_ops
from kernels.vector_math import FUNCTIONS


class Calls(TorchFunctionMode):
    """Notes the vector functions that are called, with the number of elements."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in FUNCTIONS:
            self.seen.append((function, args[0].numel(), args[0].dtype))
        return function(*args, **(kwargs or {}))


def test_a_decoder_settles_them_before_it_computes():
    model, ops = tiny_model("llama"), load_ops("torch")
    with Calls() as calls:
        Decoder(model, ops)
    assert calls.seen == [(function, 1, dtype) for dtype in (torch.float32, torch.float64) for function in FUNCTIONS]
