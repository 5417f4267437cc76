"""How much of full prefill's arithmetic a method does: its rows, and the keys that each of them attends to."""

from dataclasses import dataclass

import numpy as np

from engine.model.decoder import Decoder
from engine.types import MethodRun, Run


@dataclass(frozen=True, slots=True)
class Work:
    """Floating point operations of one layer of a model. per_row: products with weights; per_pair: a row's attention to one key."""

    per_row: float
    per_pair: float

    def share(self, run: Run, method: MethodRun) -> float:
        """Returns the operations of a method's rows over those of every row of the prompt, the last layer counted like the others.

        A row attends to all keys before it, so late rows are more work than early ones. A probe is not counted.
        """
        num_tokens, rows = len(run.tokens), method.rows
        counts = np.full(run.num_layers, len(rows)) if method.layer_rows is None else method.layer_rows
        keys_per_row = np.where(counts == num_tokens, (num_tokens + 1) / 2, rows.mean() + 1 if len(rows) else 0.0)
        all_rows = run.num_layers * num_tokens * (self.per_row + self.per_pair * (num_tokens + 1) / 2)
        return float((counts * (self.per_row + self.per_pair * keys_per_row)).sum() / all_rows)


def work_of(decoder: Decoder) -> Work:
    """Returns the work of a decoder's layers."""
    layer = decoder.weights.layers[0]
    products = (layer.query, layer.keys_values, layer.out, layer.gate_up, layer.down)
    return Work(2.0 * sum(product.num_weights for product in products), 4.0 * decoder.spec.num_heads * decoder.spec.head_dim)
