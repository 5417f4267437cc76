"""Lets SGLang import a torchvision that was built for CUDA beside a torch without it; on PYTHONPATH of the CPU lane only.

Such a torchvision describes operators that its own library would have declared. They are declared here, without code, as soon
as somebody imports torchvision: SGLang needs its image transforms to be importable and never calls an operator on a CPU.
"""

import importlib.abc
import sys

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _DeclareOperators(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in ("nms", "qnms"):
                if not hasattr(torch.ops.torchvision, operator):
                    torch.library.define(f"torchvision::{operator}", _SIGNATURE)
        return None


sys.meta_path.insert(0, _DeclareOperators())
