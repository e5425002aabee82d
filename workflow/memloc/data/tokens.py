"""Texts to token ids, and token ids to padded batches."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from memloc.errors import MemlocError
from memloc.progress import progress
from memloc.store.columns import text_names
from memloc.store.files import reading
from memloc.store.tables import read_parquet

TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken")
TOKENIZER = "Bring the model's folder anew, or save its tokenizer there with save_pretrained."
NO_CHARACTER = "\ufdd0\uffff"  # code points that are no characters of any text


@dataclass(frozen=True)
class Examples:
    """One split of a task, tokenised; row i of every field belongs to the same example.

    ids: token ids, special tokens included; labels (n,) class ids trained on; noisy (n,) bool;
    index (n,) the example's number in perturbed.parquet; n_cut: inputs that were cut.
    """

    ids: list[list[int]]
    labels: torch.Tensor
    noisy: torch.Tensor
    index: torch.Tensor
    n_cut: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: torch.Tensor) -> "Examples":
        """The examples at `rows` (integer positions, any order)."""
        ids = [self.ids[row] for row in rows.tolist()]
        return Examples(ids, self.labels[rows], self.noisy[rows], self.index[rows])


def has_tokenizer(folder: str | Path) -> bool:
    """Whether a folder holds a tokenizer's files (some tokenizers have but their settings)."""
    return bool(_vocabulary(folder)) or (Path(folder) / "tokenizer_config.json").exists()


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The folder's tokenizer, padding on the right with its own pad token, else its eos token.

    Raises MemlocError where the folder has no tokenizer, or the tokenizer neither token.
    """
    try:
        with reading(f"{folder}: the tokenizer", TOKENIZER):
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except MemlocError:
        if _vocabulary(folder):
            raise
        tokenizer = None
    # Where its files are missing, transformers makes up a tokenizer that knows no word; those of
    # characters or bytes (CANINE, ByT5) need none.
    if tokenizer is None or (tokenizer.vocab_files_names and not _vocabulary(folder)):
        raise MemlocError(
            f"{folder}: there is no tokenizer ({', '.join(TOKENIZER_FILES)}); save the model's "
            "tokenizer into the folder with save_pretrained"
        )
    return padding_right(tokenizer, str(folder))


def padding_right(tokenizer: PreTrainedTokenizerBase, where: str) -> PreTrainedTokenizerBase:
    """The tokenizer, changed so that it pads on the right with its pad token, else its eos token.

    Raises MemlocError where it has neither; `where` names it.
    """
    tokenizer.padding_side = "right"
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise MemlocError(f"{where}: the tokenizer has neither a pad nor an eos token")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _vocabulary(folder: str | Path) -> list[Path]:
    return [file for kind in TOKENIZER_FILES for file in Path(folder).glob(kind)]


def encode_texts(
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Sequence[str]],
    separator: str | None,
    max_length: int,
) -> tuple[list[list[int]], int]:
    """Token ids of each row's parts joined by the separator, and how many rows were cut.

    A row is prefix + part SEP part … + suffix, with the tokenizer's own special tokens around
    and no more than `max_length` ids; what exceeds that is cut from the end of the parts.
    `separator` is "sep", "eos", a text such as "|", or None: the sep token, else "|".
    Strings in a text that look like special tokens are tokenised as text.
    """
    prefix, suffix = special_ids(tokenizer)
    joint = _separator_ids(tokenizer, separator)
    room = max_length - len(prefix) - len(suffix)
    parts = [part if i == 0 else f" {part}" for row in rows for i, part in enumerate(row)]
    pieces = iter(plain_ids(tokenizer, parts))
    encoded, n_cut = [], 0
    for row in rows:
        body: list[int] = []
        for i in range(len(row)):
            body += (joint if i else []) + next(pieces)
        n_cut += len(body) > room
        encoded.append(prefix + body[:room] + suffix)
    return encoded, n_cut


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Id -> text of the tokens that no text holds: the named ones, and those only declared special
    (Llama 3's <|start_header_id|>), but for the unknown token."""
    found = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    declared = getattr(tokenizer, "added_tokens_decoder", {})
    found |= {i: token.content for i, token in declared.items() if token.special}
    found.pop(tokenizer.unk_token_id, None)
    return found


def plain_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of each text without anything around it; none is a special token's.

    In a data set's texts, strings such as "[SEP]" or "</s>" are words like any other. Raises
    MemlocError for a text of which a tokenizer written in Python makes special tokens.
    """
    if not texts:
        return []
    # The tokenizer's warning about long texts would mislead (verbose): encode_texts cuts them.
    options = dict(add_special_tokens=False, return_attention_mask=False, verbose=False)
    ids = tokenizer(list(texts), **options)["input_ids"]
    forbidden = special_tokens(tokenizer)
    special = {*forbidden, *tokenizer.all_special_ids}
    written = {*forbidden.values(), *tokenizer.all_special_tokens}
    if (inner := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        taken = [
            number
            for number, text in enumerate(texts)
            if any(token in text for token in written)
            or not forbidden.keys().isdisjoint(ids[number])
        ]
        # Asking the tokenizer to split special tokens isn't enough: its vocabulary may hold them.
        if taken:
            plain = _without(inner, special)
            for number in taken:
                ids[number] = plain.encode(texts[number], add_special_tokens=False).ids
    for text, row in zip(texts, ids, strict=True):
        if not forbidden.keys().isdisjoint(row):
            token = next(token for token in row if token in forbidden)
            raise MemlocError(
                f"the text {text[:60]!r} holds what the tokenizer reads as its special token "
                f"{tokenizer.convert_ids_to_tokens(token)!r} (id {token}); take it out of the texts"
            )
    return ids


def _without(inner: Any, special: set[int]) -> Any:
    """A fast tokenizer in which special ids keep their places, under names that no text holds."""
    names = {inner.id_to_token(token): f"{NO_CHARACTER}{token}{NO_CHARACTER}" for token in special}

    def renamed(piece: str) -> str:
        return names.get(piece, piece)

    content = json.loads(inner.to_str())
    for token in content["added_tokens"]:
        token["content"] = renamed(token["content"])
    model = content["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {renamed(piece): token for piece, token in model["vocab"].items()}
    else:
        model["vocab"] = [[renamed(piece), score] for piece, score in model["vocab"]]
    if model.get("unk_token"):
        model["unk_token"] = renamed(model["unk_token"])
    if "merges" in model:
        pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
        model["merges"] = [pair for pair in pairs if not names.keys() & {*pair, "".join(pair)}]
    content.update(post_processor=None, truncation=None, padding=None)
    plain = type(inner).from_str(json.dumps(content))
    plain.encode_special_tokens = True
    return plain


def special_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text.

    They show around a text of which the tokenizer makes a token, and stand where that is the only
    reading. Raises MemlocError where no text tells.
    """
    pieces = (
        tokenizer.decode([token], skip_special_tokens=True)
        for token in range(min(len(tokenizer), 10_000))
    )
    for text in chain("a0.", pieces):
        plain = plain_ids(tokenizer, [text])[0]
        whole = tokenizer(text)["input_ids"]
        starts = [
            start
            for start in range(len(whole) - len(plain) + 1)
            if whole[start : start + len(plain)] == plain
        ]
        if plain and len(starts) == 1:
            return whole[: starts[0]], whole[starts[0] + len(plain) :]
    raise MemlocError(
        f"{tokenizer.name_or_path}: its special tokens can't be told from its text; does the "
        "tokenizer belong to this model?"
    )


def _separator_ids(tokenizer: PreTrainedTokenizerBase, separator: str | None) -> list[int]:
    if separator is None:
        separator = "|" if tokenizer.sep_token_id is None else "sep"
    if separator in ("sep", "eos"):
        token_id = getattr(tokenizer, f"{separator}_token_id")
        if token_id is None:
            raise MemlocError(
                f"separator: {separator}: the tokenizer of {tokenizer.name_or_path} has no such "
                'token; name another separator in model_sources, e.g. "|"'
            )
        return [token_id]
    return plain_ids(tokenizer, [f" {separator}"])[0]


def load_examples(
    path: str | Path,
    split: str,
    class_names: Sequence[str],
    labels: str,
    tokenizer: PreTrainedTokenizerBase,
    separator: str | None,
    max_length: int,
) -> Examples:
    """One split of a perturbed.parquet, tokenised, with its `labels` ("original"/"perturbed").

    Rows without an original label (noise of unknown correction) are left out of "original".
    Raises MemlocError for a label outside `class_names` and for a text without any token.
    """
    frame = read_parquet(path)
    frame = frame[frame["split"] == split]
    column = {"original": "original_label", "perturbed": "label"}[labels]
    frame = frame[frame[column].notna()]
    class_ids = {name: i for i, name in enumerate(class_names)}
    unknown = sorted(set(frame[column]) - set(class_ids))
    if unknown:
        raise MemlocError(
            f"{path}: {column} {unknown[0]!r} is not among the task's {list(class_names)}"
        )
    texts = frame[text_names(frame)]
    return tokenised(
        list(texts.itertuples(index=False, name=None)),
        torch.tensor(frame[column].map(class_ids).to_numpy(dtype="int64", copy=True)),
        torch.tensor(frame["noisy"].to_numpy(dtype=bool, copy=True)),
        torch.tensor(frame["index"].to_numpy(dtype="int64", copy=True)),
        tokenizer,
        separator,
        max_length,
        path,
    )


def tokenised(
    rows: Sequence[Sequence[str]],
    labels: torch.Tensor,
    noisy: torch.Tensor,
    index: torch.Tensor,
    tokenizer: PreTrainedTokenizerBase,
    separator: str | None,
    max_length: int,
    where: str | Path,
) -> Examples:
    """Examples of rows of texts, with their class ids, marks and numbers: (n,) each.

    Raises MemlocError, which says `where`, for a row that the model can't read.
    """
    ids, n_cut = encode_texts(tokenizer, rows, separator, max_length)
    _refuse_unreadable(where, ids, index.tolist(), tokenizer)
    return Examples(ids, labels, noisy, index, n_cut)


def _refuse_unreadable(
    path: str | Path, ids: list[list[int]], index: list[int], tokenizer: PreTrainedTokenizerBase
) -> None:
    n_special = sum(len(part) for part in special_ids(tokenizer))
    for number, row in zip(index, ids, strict=True):
        if len(row) <= n_special:
            raise MemlocError(
                f"{path}: row {number} has no token the model can read; "
                "drop it with drop_empty in the task file, or mend its text"
            )
        if tokenizer.pad_token_id in row:
            raise MemlocError(
                f"{path}: row {number} holds the pad token (id {tokenizer.pad_token_id}), so its "
                "last real token can't be told; name another separator in model_sources, or give "
                "the tokenizer a pad token of its own"
            )


def batches_by_length(ids: Sequence[Sequence[int]], batch_size: int) -> list[list[int]]:
    """Row numbers in batches of neighbours in length, so that little is padded."""
    order = sorted(range(len(ids)), key=lambda row: (len(ids[row]), row))
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def batches_by_tokens(ids: Sequence[Sequence[int]], tokens: int) -> list[list[int]]:
    """The same, each batch holding at most `tokens` padded tokens (at least one row)."""
    order = sorted(range(len(ids)), key=lambda row: (len(ids[row]), row))
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * len(ids[row]) <= tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


class Batch(dict[str, Any]):
    """A padded batch as a model takes it, which knows its rows' lengths without asking a GPU."""

    def __init__(self, inputs: dict[str, Any], lengths: list[int]):
        super().__init__(inputs)
        self.lengths = lengths


def collate(ids: Sequence[Sequence[int]], pad_id: int, device: torch.device | str = "cpu") -> Batch:
    """input_ids and attention_mask, both (rows, longest row), padded on the right."""
    longest = max(len(row) for row in ids)
    padded = torch.tensor([list(row) + [pad_id] * (longest - len(row)) for row in ids])
    lengths = [len(row) for row in ids]
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    inputs = {"input_ids": padded.to(device), "attention_mask": mask.to(device)}
    return Batch(inputs, lengths)


def padded_batches(
    examples: Examples, batches: Sequence[Sequence[int]], pad_id: int, device: torch.device | str
) -> Iterator[tuple[torch.Tensor, dict[str, Any]]]:
    """Row numbers and padded inputs of each batch."""
    for rows in batches:
        yield torch.tensor(rows), collate([examples.ids[row] for row in rows], pad_id, device)


def token_batches(
    examples: Examples, tokens: int, pad_id: int, device: torch.device | str, description: str
) -> Iterator[tuple[torch.Tensor, dict[str, Any]]]:
    """padded_batches of neighbours in length, of at most `tokens` padded tokens, with progress."""
    batches = batches_by_tokens(examples.ids, tokens)
    padded = padded_batches(examples, batches, pad_id, device)
    yield from progress(padded, len(batches), description)
