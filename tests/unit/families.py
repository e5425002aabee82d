"""Tiny random-weight model folders of many families, as `from_pretrained` reads them.

`save(name, folder)` writes model and tokenizer in well below a second and without a network. A
family is an entry of FAMILIES: its kind of tokenizer, and what its configuration has beside SHAPE.
"""

from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    CanineTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from tiny import random_model

N_LAYERS, WIDTH, POSITIONS = 3, 16, 40
SHAPE = dict(
    hidden_size=WIDTH,
    num_hidden_layers=N_LAYERS,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=POSITIONS,
)
GROUPED = dict(num_key_value_heads=1, head_dim=8)
EXPERTS = dict(
    GROUPED, num_experts_per_tok=1, num_local_experts=2, num_experts=2, moe_intermediate_size=16
)
NO_CLASSIFIER = {"mamba", "rwkv"}
LEAVE = "leave"  # for what SHAPE says and the family's configuration refuses
LETTERS = [chr(i) for i in range(33, 127)]


def wordpieces() -> PreTrainedTokenizerFast:
    """As BERT's: [CLS] text [SEP], pad id 0."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    inner = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.post_processor = _template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", inner)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=inner, **dict(zip(names, special, strict=True)))


def bytes_encoder() -> PreTrainedTokenizerFast:
    """As RoBERTa's: bytes, <s> text </s>, two </s> between the parts of a pair, pad id 1."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    inner = _bytes(special)
    inner.post_processor = _template("<s> $A </s>", "<s> $A </s> </s> $B </s>", inner)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", **_ENDS
    )


def unigram_encoder() -> PreTrainedTokenizerFast:
    """As XLM-RoBERTa's: a vocabulary whose pieces include <s>, <pad> and </s>; pad id 1."""
    inner = _unigram(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    inner.post_processor = _template("<s> $A </s>", "<s> $A </s> </s> $B </s>", inner)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", **_ENDS
    )


def unigram_decoder() -> PreTrainedTokenizerFast:
    """As Llama 2's or Gemma's: <bos> text, pad id 0."""
    inner = _unigram(["<pad>", "<eos>", "<bos>", "<unk>"])
    inner.post_processor = _template("<bos> $A", "<bos> $A <bos> $B", inner)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
    )


def unigram_bare() -> PreTrainedTokenizerFast:
    """As T5's or XLNet's: text </s>, pad id 0."""
    inner = _unigram(["<pad>", "</s>", "<unk>"])
    inner.post_processor = _template("$A </s>", "$A </s> $B </s>", inner)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def bytes_decoder() -> PreTrainedTokenizerFast:
    """As GPT-2's: bytes and nothing around them; its eos token (id 0) pads."""
    inner = _bytes(["<|endoftext|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    )


def bytes_with_bos() -> PreTrainedTokenizerFast:
    """As OPT's: </s> text, pad id 1."""
    inner = _bytes(["<s>", "<pad>", "</s>", "<unk>"])
    inner.post_processor = _template("</s> $A", "</s> $A </s> $B", inner)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", bos_token="</s>"
    )


@cache  # seconds, as it lists a million characters
def characters() -> PreTrainedTokenizerBase:
    """CANINE's, which has no vocabulary: characters are ids."""
    return CanineTokenizer()


_ENDS = dict(bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>")


def _bytes(special: list[str]) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: i for i, piece in enumerate([*special, *alphabet])}
    inner = Tokenizer(models.BPE(vocabulary, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return inner


def _unigram(special: list[str]) -> Tokenizer:
    scores = [(piece, 0.0) for piece in special]
    scores += [(letter, -4.0) for letter in ("▁", *LETTERS)]
    inner = Tokenizer(models.Unigram(scores, unk_id=special.index("<unk>")))
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    return inner


def _template(single: str, pair: str, inner: Tokenizer) -> Any:
    tokens = {word.partition(":")[0] for word in f"{single} {pair}".split() if word[0] != "$"}
    special = [(token, inner.token_to_id(token)) for token in sorted(tokens)]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)


def _family(tokenizer: Any, model_type: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    return tokenizer, {"model_type": model_type, **options}


FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    # Encoders.
    "ALBERT": _family(unigram_encoder, "albert", embedding_size=8),
    "BERT": _family(wordpieces, "bert"),
    "BigBird": _family(unigram_encoder, "big_bird", attention_type="original_full"),
    "BigBird (sparse)": _family(unigram_encoder, "big_bird", block_size=2, num_random_blocks=1),
    "CamemBERT": _family(unigram_encoder, "camembert"),
    "CANINE": _family(characters, "canine", num_hash_buckets=64),
    "ConvBERT": _family(wordpieces, "convbert", embedding_size=WIDTH),
    "Data2VecText": _family(bytes_encoder, "data2vec-text"),
    "DeBERTa": _family(
        bytes_encoder, "deberta", relative_attention=True, pos_att_type=["c2p", "p2c"]
    ),
    "DeBERTa-v2": _family(
        unigram_encoder,
        "deberta-v2",
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=8,
    ),
    "DeBERTa-v2 (with convolution)": _family(
        unigram_encoder,
        "deberta-v2",
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=8,
        conv_kernel_size=3,
    ),
    "DistilBERT": _family(wordpieces, "distilbert", hidden_dim=24),
    "ELECTRA": _family(wordpieces, "electra", embedding_size=8),
    "ERNIE": _family(wordpieces, "ernie"),
    "ESM": _family(
        wordpieces, "esm", position_embedding_type="rotary", mask_token_id=4, token_dropout=False
    ),
    "EuroBERT": _family(bytes_encoder, "eurobert", **GROUPED),
    "FlauBERT": _family(bytes_encoder, "flaubert"),
    "FNet": _family(unigram_encoder, "fnet"),
    "Funnel": _family(
        wordpieces,
        "funnel",
        num_hidden_layers=LEAVE,
        block_sizes=[1, 1, 1],
        d_model=WIDTH,
        n_head=2,
        d_head=8,
        d_inner=24,
    ),
    "I-BERT": _family(bytes_encoder, "ibert"),
    "Longformer": _family(bytes_encoder, "longformer", attention_window=[4] * N_LAYERS),
    "MegatronBERT": _family(wordpieces, "megatron-bert"),
    "MobileBERT": _family(
        wordpieces,
        "mobilebert",
        embedding_size=16,
        intra_bottleneck_size=8,
        num_feedforward_networks=2,
    ),
    "ModernBERT": _family(wordpieces, "modernbert"),
    "MPNet": _family(bytes_encoder, "mpnet"),
    "MRA": _family(bytes_encoder, "mra"),
    "NomicBERT": _family(wordpieces, "nomic_bert"),
    "Nystromformer": _family(
        unigram_encoder, "nystromformer", num_landmarks=8, segment_means_seq_len=8
    ),
    "Reformer": _family(
        unigram_encoder,
        "reformer",
        attention_head_size=8,
        feed_forward_size=24,
        axial_pos_shape=[5, 8],
        axial_pos_embds_dim=[8, 8],
        is_decoder=False,
        attn_layers=["local", "local", "local"],
    ),
    "RemBERT": _family(unigram_encoder, "rembert", input_embedding_size=8, output_embedding_size=8),
    "RoBERTa": _family(bytes_encoder, "roberta"),
    "RoBERTa-PreLayerNorm": _family(bytes_encoder, "roberta-prelayernorm"),
    "RoFormer": _family(wordpieces, "roformer", embedding_size=WIDTH),
    "SqueezeBERT": _family(
        wordpieces,
        "squeezebert",
        embedding_size=WIDTH,
        **{
            f"{part}_groups": 2
            for part in ("q", "k", "v", "post_attention", "intermediate", "output")
        },
    ),
    "XLM": _family(bytes_encoder, "xlm"),
    "XLM-RoBERTa": _family(unigram_encoder, "xlm-roberta"),
    "XLM-RoBERTa-XL": _family(unigram_encoder, "xlm-roberta-xl"),
    "XLNet": _family(unigram_bare, "xlnet", d_inner=24, d_head=8, max_position_embeddings=LEAVE),
    "X-MOD": _family(unigram_encoder, "xmod", default_language="en_XX"),
    "YOSO": _family(unigram_encoder, "yoso", use_expectation=True, use_fast_hash=False),
    # Decoders.
    "Arcee": _family(unigram_decoder, "arcee", **GROUPED),
    "BioGPT": _family(bytes_encoder, "biogpt"),
    "BLOOM": _family(bytes_encoder, "bloom", max_position_embeddings=LEAVE),
    "CTRL": _family(bytes_decoder, "ctrl", dff=24),
    "DiffLlama": _family(unigram_decoder, "diffllama", num_key_value_heads=2, head_dim=8),
    "Doge": _family(unigram_decoder, "doge", num_key_value_heads=1),
    "EXAONE 4": _family(bytes_encoder, "exaone4", sliding_window=4, **GROUPED),
    "Falcon": _family(bytes_decoder, "falcon"),
    "Gemma": _family(unigram_decoder, "gemma", **GROUPED),
    "Gemma 2": _family(unigram_decoder, "gemma2", sliding_window=4, **GROUPED),
    "Gemma 3 (text)": _family(unigram_decoder, "gemma3_text", sliding_window=4, **GROUPED),
    "GLM": _family(bytes_decoder, "glm", **GROUPED),
    "GLM 4": _family(bytes_decoder, "glm4", **GROUPED),
    "GPT (OpenAI)": _family(bytes_decoder, "openai-gpt"),
    "GPT-2": _family(bytes_decoder, "gpt2"),
    "GPT-BigCode": _family(bytes_decoder, "gpt_bigcode"),
    "GPT-J": _family(bytes_decoder, "gptj", rotary_dim=4),
    "GPT-Neo": _family(
        bytes_decoder, "gpt_neo", attention_types=[[["global"], N_LAYERS]], window_size=4
    ),
    "GPT-NeoX (Pythia)": _family(bytes_decoder, "gpt_neox"),
    "gpt-oss": _family(bytes_decoder, "gpt_oss", sliding_window=4, **EXPERTS),
    "Helium": _family(unigram_decoder, "helium", **GROUPED),
    "Llama": _family(unigram_decoder, "llama", **GROUPED),
    "Llama 3": _family(bytes_decoder, "llama", eos_token_id=[0, 1], **GROUPED),
    "Ministral": _family(unigram_decoder, "ministral", sliding_window=4, **GROUPED),
    "Mistral": _family(unigram_decoder, "mistral", sliding_window=4, **GROUPED),
    "Mixtral": _family(unigram_decoder, "mixtral", **EXPERTS),
    "ModernBERT decoder": _family(unigram_decoder, "modernbert-decoder"),
    "MPT": _family(bytes_decoder, "mpt", max_seq_len=POSITIONS),
    "Nemotron": _family(unigram_decoder, "nemotron", **GROUPED),
    "OLMo": _family(bytes_decoder, "olmo"),
    "OLMo 2": _family(bytes_decoder, "olmo2"),
    "OLMo 3": _family(bytes_decoder, "olmo3", sliding_window=4),
    "OPT": _family(bytes_with_bos, "opt", word_embed_proj_dim=WIDTH, ffn_dim=24),
    "Persimmon": _family(unigram_decoder, "persimmon"),
    "Phi": _family(bytes_decoder, "phi"),
    "Phi-3": _family(unigram_decoder, "phi3", num_key_value_heads=1),
    "Qwen2": _family(bytes_decoder, "qwen2", **GROUPED),
    "Qwen2-MoE": _family(bytes_decoder, "qwen2_moe", shared_expert_intermediate_size=16, **EXPERTS),
    "Qwen3": _family(bytes_decoder, "qwen3", **GROUPED),
    "Seed-OSS": _family(bytes_decoder, "seed_oss", **GROUPED),
    "SmolLM3": _family(bytes_decoder, "smollm3", **GROUPED),
    "StableLM": _family(bytes_decoder, "stablelm", num_key_value_heads=1),
    "StarCoder2": _family(bytes_decoder, "starcoder2", num_key_value_heads=1),
    # Encoder-decoders, state-space models, images beside text.
    "BART": _family(
        bytes_encoder,
        "bart",
        encoder_layers=2,
        decoder_layers=2,
        d_model=WIDTH,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
    ),
    "Gemma 3 (images)": _family(
        unigram_decoder,
        "gemma3",
        text_config=dict(SHAPE, vocab_size=99, **GROUPED),
        vision_config=dict(
            hidden_size=WIDTH,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=8,
            patch_size=4,
        ),
        mm_tokens_per_image=4,
    ),
    "Jamba": _family(
        unigram_decoder,
        "jamba",
        attn_layer_period=2,
        attn_layer_offset=1,
        mamba_d_state=4,
        **EXPERTS,
    ),
    "Mamba": _family(bytes_decoder, "mamba", state_size=4),
    "RWKV": _family(bytes_decoder, "rwkv", attention_hidden_size=16),
    "T5": _family(
        unigram_bare,
        "t5",
        decoder_start_token_id=0,
        d_model=WIDTH,
        d_ff=24,
        d_kv=8,
        num_layers=2,
        num_heads=2,
    ),
}


def save(name: str, folder: str | Path, seed: int = 0) -> Path:
    """The family's model and tokenizer in a folder, as save_pretrained writes them."""
    make, options = FAMILIES[name]
    tokenizer = make()
    model = build(tokenizer, seed, **options)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)


def build(
    tokenizer: PreTrainedTokenizerBase, seed: int, model_type: str, **options: Any
) -> PreTrainedModel:
    """A model whose ids are the tokenizer's; large weights make every layer matter."""
    kinds = {kind: getattr(tokenizer, f"{kind}_token_id") for kind in ("pad", "bos", "eos", "cls")}
    known = {f"{kind}_token_id": i for kind, i in kinds.items() if kind != "cls" or i is not None}
    asked = {**SHAPE, "vocab_size": len(tokenizer), **known, "num_labels": 3, **options}
    config = AutoConfig.for_model(
        model_type, **{name: value for name, value in asked.items() if value != LEAVE}
    )
    without = model_type in NO_CLASSIFIER
    kind = AutoModel if without else AutoModelForSequenceClassification
    return random_model(config, seed, kind)
