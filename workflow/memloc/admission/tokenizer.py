"""Whether texts reach a model as its tokenizer means them: the admission exam's part on tokens."""

from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.tokens import encode_texts, plain_ids, special_ids, special_tokens
from memloc.errors import MemlocError
from memloc.models.layers import embedding_rows

PAIR = ("ab", "cd")
NO_LIMIT = 1_000_000
# Case, accents, scripts, digits, spaces, line ends, a sign beyond 16 bits, and a long text.
TEXTS = (
    "The quick brown fox doesn't jump over 13 lazy dogs.",
    "ACGT acgt",
    "  two  spaces\tand\nlines ",
    "Crème brûlée — 3,50 €; Ελλάδα, Россия, 東京, العربية, \U0001f642",
    "a",
    "word " * 700,
)


def check_tokenizer(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """What was found of a tokenizer that suits its model, as a sentence for the manifest.

    Single texts are encoded as the tokenizer itself does; of pairs it is said whether they are
    (see `_pairs`). Special tokens written out in a text stay text. Padding has one id, which no
    input holds. Raises MemlocError where one of these fails.
    """
    where = tokenizer.name_or_path or type(tokenizer).__name__
    texts = [*TEXTS, *_pieces(tokenizer)]
    encoded, _ = encode_texts(tokenizer, [(text,) for text in texts], None, NO_LIMIT)
    _check_single(where, tokenizer, texts, encoded)
    _check_special(where, tokenizer)
    _check_padding(where, model, tokenizer)
    _check_rows(where, model, tokenizer, encoded)
    return f"{_around(tokenizer)}; {_pairs(tokenizer)}"


def _pieces(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """A text of the tokenizer's own words, which an alphabet of its own may need."""
    some = range(0, len(tokenizer), max(1, len(tokenizer) // 50))
    return [" ".join(tokenizer.decode([token], skip_special_tokens=True) for token in some)]


def _check_single(
    where: str, tokenizer: PreTrainedTokenizerBase, texts: list[str], ours: list[list[int]]
) -> None:
    special = {*special_tokens(tokenizer).values(), *tokenizer.all_special_tokens}
    for text, row in zip(texts, ours, strict=True):
        if any(token in text for token in special):
            continue  # the tokenizer reads these, and memloc doesn't: see _check_special
        theirs = _ids(tokenizer(text, verbose=False))
        if row != theirs:
            raise MemlocError(
                f"{where}: the tokenizer's own encoding of {text[:40]!r} differs from memloc's: "
                f"{_brief(theirs)} against {_brief(row)}; save the tokenizer anew with "
                "save_pretrained, without settings of its own for truncation or padding"
            )


def _check_special(where: str, tokenizer: PreTrainedTokenizerBase) -> None:
    if not tokenizer.is_fast:
        return  # characters of private use: a text that holds one is refused when it is met
    forbidden = special_tokens(tokenizer)
    written = [f"x {token} y" for token in [*forbidden.values(), *tokenizer.all_special_tokens]]
    for text, ids in zip(written, plain_ids(tokenizer, written), strict=True):
        if not forbidden.keys().isdisjoint(ids):
            raise MemlocError(
                f"{where}: {text!r} in a text becomes the special token itself: {_brief(ids)}; "
                "use a tokenizer that can tell them apart"
            )


def _check_padding(where: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    pad, known = tokenizer.pad_token_id, model.config.pad_token_id
    if pad != known:
        raise MemlocError(
            f"{where}: the tokenizer pads with id {pad}, the model with id {known}; set both to "
            "the same and save them with save_pretrained"
        )
    prefix, suffix = special_ids(tokenizer)
    if pad in prefix + suffix:
        raise MemlocError(
            f"{where}: the tokenizer puts its pad token (id {pad}) around every text, so a row's "
            "last real token can't be told from padding; give it a pad token of its own "
            "(pad_token, e.g. one that no text uses) and save it with save_pretrained"
        )


def _check_rows(
    where: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    encoded: list[list[int]],
) -> None:
    rows = embedding_rows(model)
    highest = max([tokenizer.pad_token_id, *(token for row in encoded for token in row)])
    if rows is not None and highest >= rows:
        raise MemlocError(
            f"{where}: the tokenizer gives the id {highest}, but the model has embeddings for "
            f"{rows} ids; the tokenizer of another model?"
        )


def _around(tokenizer: PreTrainedTokenizerBase) -> str:
    prefix, suffix = (tokenizer.convert_ids_to_tokens(part) for part in special_ids(tokenizer))
    return f"inputs are {' '.join([*prefix, 'text', *suffix])}"


def _pairs(tokenizer: PreTrainedTokenizerBase) -> str:
    """Whether two parts are encoded as the tokenizer encodes a pair.

    memloc puts one separator between parts, and a space before the second, in every model: with
    BERT that is the tokenizer's own pair. RoBERTa's has two separators, DeBERTa's no space, and
    decoders have no pairs. Those differ on purpose, and it is only said which they are.
    """
    separator = tokenizer.sep_token_id
    if separator is None:
        return "it has no separator: parts are joined by a bar, or by what model_sources names"
    theirs = _ids(tokenizer(*PAIR))
    if encode_texts(tokenizer, [PAIR], None, NO_LIMIT)[0][0] == theirs:
        return "pairs are encoded as the tokenizer does"
    first, second = plain_ids(tokenizer, PAIR)
    prefix, suffix = special_ids(tokenizer)
    if theirs == [*prefix, *first, separator, *second, *suffix]:
        return "pairs have a space before the second part, where the tokenizer has none"
    return "pairs have one separator between the parts, where the tokenizer has another form"


def _ids(encoding: Any) -> list[int]:
    return list(encoding["input_ids"])


def _brief(ids: list[int]) -> str:
    return f"[{', '.join(map(str, ids[:12]))}{', …' if len(ids) > 12 else ''}]"
