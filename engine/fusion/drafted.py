"""Greedy decoding behind drafts: answers that others gave to the same request, checked many tokens at a time.

Speculative decoding (Leviathan et al., arXiv 2211.17192, section 2) with known answers in place of a small model. What is written is
what `decode` would write, token for token (but for two tokens whose logits differ by the rounding of one pass over several rows);
how long each token takes to come is not measured this way.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.fusion.decode import require_numbers
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder


@torch.inference_mode()
def decode_drafted(
    decoder: Decoder, logits: Tensor, start: int, cache: RequestCache, max_new_tokens: int, drafts: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns the ids, int32 [n], of the greedy answer that continues a cache filled up to `start`.

    Args:
        logits: of the first token, [vocabulary].
        drafts: answers that this one may share its beginning with, each int32 [m].

    Raises EngineError where the model computes no numbers.
    """
    require_numbers(decoder, logits)
    ids: list[int] = []
    while len(ids) < max_new_tokens and (token := int(logits.argmax())) not in decoder.spec.eos_token_ids:
        ids.append(token)
        if len(ids) == max_new_tokens:
            break
        draft = _continuation(ids, drafts)[: max_new_tokens - len(ids)]
        behind = decoder.extend(torch.tensor([token, *draft]), start + len(ids) - 1, cache)
        chosen = behind.argmax(dim=-1).tolist()
        num_right = next((i for i, (own, drafted) in enumerate(zip(chosen, draft, strict=False)) if own != drafted), len(draft))
        ids += draft[:num_right]
        logits = behind[num_right]
    return np.asarray(ids, dtype=np.int32)


def _continuation(ids: list[int], drafts: Sequence[np.ndarray]) -> list[int]:
    """Returns what follows the ids in the first draft that begins with them and goes on."""
    same = (draft for draft in drafts if len(draft) > len(ids) and np.array_equal(draft[: len(ids)], ids))
    return next(same, np.empty(0, np.int32))[len(ids) :].tolist()
