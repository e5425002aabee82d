"""Tiny random-weight models of every family, and a tokenizer, built here."""

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

N_LAYERS = 4
WIDTH = 32
VOCABULARY = 60
COMMON = dict(vocab_size=VOCABULARY, num_labels=3)
ENCODER = dict(
    hidden_size=WIDTH,
    num_hidden_layers=N_LAYERS,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
)

FAMILIES: dict[str, dict] = {
    "bert": dict(model_type="bert", pad_token_id=0, **ENCODER),
    "opt": dict(
        model_type="opt",
        pad_token_id=1,
        hidden_size=WIDTH,
        word_embed_proj_dim=WIDTH,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=4,
        ffn_dim=48,
        max_position_embeddings=64,
    ),
    "gpt_neo": dict(
        model_type="gpt_neo",
        pad_token_id=0,
        hidden_size=WIDTH,
        num_layers=N_LAYERS,
        attention_types=[[["global", "local"], N_LAYERS // 2]],
        num_heads=4,
        intermediate_size=48,
        window_size=4,
        max_position_embeddings=64,
    ),
    "gpt_neox": dict(model_type="gpt_neox", pad_token_id=0, **ENCODER),
    "mpnet": dict(model_type="mpnet", pad_token_id=1, **ENCODER),
}

# The final norm of those that have one, between layer L and the head.
NORMS = {
    "opt": "model.decoder.final_layer_norm",
    "gpt_neo": "transformer.ln_f",
    "gpt_neox": "gpt_neox.final_layer_norm",
}

# Families beyond the study's, with what is peculiar to each: relative positions, grouped keys, …
DECODER = dict(pad_token_id=0, num_key_value_heads=2, head_dim=8, **ENCODER)
OTHERS: dict[str, dict] = {
    "roberta": dict(model_type="roberta", pad_token_id=0, **ENCODER),
    "deberta": dict(
        model_type="deberta-v2",
        pad_token_id=0,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=8,
        **ENCODER,
    ),
    "distilbert": dict(
        model_type="distilbert",
        pad_token_id=0,
        dim=WIDTH,
        n_layers=N_LAYERS,
        n_heads=4,
        hidden_dim=48,
    ),
    "modernbert": dict(
        model_type="modernbert", pad_token_id=0, eos_token_id=1, bos_token_id=2, **ENCODER
    ),
    "gpt2": dict(model_type="gpt2", pad_token_id=0, n_embd=WIDTH, n_layer=N_LAYERS, n_head=4),
    "llama": dict(model_type="llama", **DECODER),
    "qwen3": dict(model_type="qwen3", **DECODER),
}


def tiny_model(family: str, seed: int = 0, dropout: float = 0.1) -> PreTrainedModel:
    """A random model of the family, in evaluation mode; large weights make layers matter."""
    options = {**COMMON, **(FAMILIES | OTHERS)[family]}
    config = AutoConfig.for_model(options.pop("model_type"), **options)
    for name in (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
        "embed_dropout",
        "resid_dropout",
        "hidden_dropout",
    ):
        if hasattr(config, name):
            setattr(config, name, dropout)
    config.use_cache = False
    return random_model(config, seed)


def random_model(
    config: PreTrainedConfig, seed: int, kind: Any = AutoModelForSequenceClassification
) -> PreTrainedModel:
    """A model of `config` in evaluation mode; large random weights make every layer matter."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind.from_config(config, dtype=torch.float32)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def random_ids(rows: int, seed: int = 0, longest: int = 12) -> list[list[int]]:
    """Token ids of rows of differing lengths, without pad tokens."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, longest + 1, (rows,), generator=generator).tolist()
    return [
        torch.randint(5, VOCABULARY, (length,), generator=generator).tolist() for length in lengths
    ]
