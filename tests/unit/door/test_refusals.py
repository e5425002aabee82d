"""What can't be done rightly is refused before anything is computed, in a line with the remedy."""

import ast
import re
from typing import get_type_hints

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

import memloc
import study_of_two as two
from memloc.door import windows
from memloc.door.settings import MAY_BE_0, PROBING, RETRAINING, SHARES, recipe_of
from memloc.door.words import WORDS, in_notebook_words
from memloc.errors import shortly
from memloc.localise.probes.classifiers import ProbeRecipe
from memloc.localise.retrain.group import RetrainingRecipe
from shipped import ROOT
from tiny import tiny_model

MODEL = [tiny_model("gpt_neox", seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def lists(tiny_files):
    return two.tokenizer(tiny_files), *two.data(tiny_files)


def renamed(names):
    model = tiny_model("gpt_neox", 2)
    model.config.id2label = dict(enumerate(names))
    model.config.label2id = {name: i for i, name in enumerate(names)}
    return model


def broken(value):
    model = tiny_model("gpt_neox", 2)
    next(model.parameters()).data.view(-1)[3] = value
    return model


def contradicting():
    model = renamed(["ham", "spam", "eggs"])
    model.config.label2id = {"spam": 0, "ham": 1, "eggs": 2}
    return model


def deeper():
    return tiny_model("bert", 2)


CASES = {  # what is wrong: what differs from a right call, and what the message says
    "too few labels": (dict(labels=[0, 1]), "labels: 2 values for 90 texts"),
    "too few marks": (dict(noisy=[True]), "noisy: 1 values for 90 texts"),
    "numbers as marks": (dict(noisy=[5] * 90), "not the numbers of the noisy ones"),
    "no noise": (dict(noisy=[False] * 90), "no example is marked as noisy"),
    "label beyond": (dict(labels=[3] * 90), "labels: row 0 has 3, which is no class"),
    "label below": (dict(labels=[-100] * 90), "row 0 has -100"),
    "label of truth": (dict(labels=[True] * 90), "row 0 has True"),
    "label as a float": (dict(labels=[0.0] * 90), "row 0 has 0.0"),
    "unknown name": (dict(labels=["maybe"] * 90), "row 0 has 'maybe'"),
    "no texts": (dict(texts=[], labels=[], noisy=[]), "texts: there are none"),
    "one text": (dict(texts="w2"), "one text alone"),
    "missing text": (dict(texts=["w2"] * 89 + [None]), "row 89 is None"),
    "uneven pairs": (dict(texts=[("w2", "w3")] * 89 + ["w2"]), "row 89 is .*as many in every row"),
    "empty text": (
        dict(texts=["w2"] * 89 + [""]),
        "has no token.*; leave it out, or mend its text$",
    ),
    "text of a frame": (dict(texts=["w2"] * 89 + [float("nan")]), "row 89 is nan; expected a text"),
    "bytes": (dict(texts=["w2"] * 89 + [b"w2"]), "row 89 is b'w2'; expected a text"),
    "dict of a text": (dict(texts=["w2"] * 89 + [{"w2": 1}]), "row 89 is .*expected a text"),
    "array of texts": (dict(texts=["w2"] * 89 + [np.array(["w2", "w3"])]), "row 89 is .*as many"),
    "set of labels": (dict(labels=set(range(90))), "where a list is expected"),
    "dict of marks": (dict(noisy=dict.fromkeys(range(90), True)), "where a list is expected"),
    "array as a label": (dict(labels=[0] * 89 + [np.array([0, 1])]), r"row 89 has \[0, 1\]"),
    "column without dataset": (dict(labels="label"), "texts that are a datasets.Dataset"),
    "architecture": (dict(original=deeper()), "theta_M2 and theta_O.*differ in shape"),
    "order of classes": (
        dict(memorised=renamed(["a", "b", "c"]), original=renamed(["b", "a", "c"])),
        "same classes in the same order",
    ),
    "state dict": (dict(original={"w": torch.zeros(1)}), "theta_O: its state dict doesn't fit"),
    "no model": (
        dict(memorised=MODEL[0].state_dict(), original=MODEL[1].state_dict()),
        "are all state dicts",
    ),
    "another object": (dict(original=torch.nn.Linear(2, 2)), "theta_O is a Linear, not a model"),
    "half precision": (dict(original=tiny_model("gpt_neox", 2).half()), "torch.float16"),
    "no head": (dict(original=MODEL[1].base_model), "without a classification head"),
    "one label": (dict(labels=1), "1 is given where a list is expected"),
    "one number": (dict(texts=5), "5 is given where a list is expected"),
    "no text": (dict(texts=[None] * 90), "row 0 is"),
    "nan": (dict(original=broken(float("nan"))), "theta_O: 1 of the"),
    "keyword": (dict(maxlength=3), "unknown keyword 'maxlength'"),
    "device": (dict(device="cuda:99"), "device 'cuda:99' can't be used"),
    "precision": (dict(precision="int4"), "precision 'int4'"),
    "device without numbers": (dict(device="meta"), "device 'meta' can't be used.*such as 'cpu'"),
    "length": (dict(max_length=0), "max_length 0: expected a whole number, 1 or more"),
    "length of truth": (dict(max_length=True), "max_length True: expected a whole number"),
    "length as a float": (dict(max_length=5.0), "max_length 5.0: expected a whole number"),
    "tokens of truth": (dict(batch_tokens=True), "batch_tokens True"),
    "no seed": (dict(seed=None), "seed None: expected a whole number, 0 or more"),
    "exam": (dict(exam="no"), "exam 'no': expected True or False"),
    "two orders": (dict(memorised=contradicting()), "theta_M2: its configuration contradicts"),
    "two orders of another": (dict(original=contradicting()), "theta_O: .*set both in the order"),
    "component": (dict(component="head"), "component 'head'"),
    "clean examples": (dict(clean_examples="some"), "clean_examples 'some'"),
    "original labels": (dict(original_labels=[0] * 90), "original_labels: row .* is marked as"),
    "too few originals": (dict(original_labels=[None]), "original_labels: 1 values for 90"),
    "validation": (dict(validation=["w2"]), "expected a pair"),
    "validation labels": (dict(validation=(["w2"], [7])), "validation labels: row 0 has 7"),
}


@pytest.mark.parametrize("case", CASES)
def test_before_anything_is_computed(lists, monkeypatch, case):
    def computed(*_):
        raise AssertionError("computed")

    for name in ("window_errors", "memorised_examples"):
        monkeypatch.setattr(windows, name, computed)
    changed, said = CASES[case]
    tokenizer, texts, labels, noisy = lists
    call = dict(memorised=MODEL[0], original=MODEL[1], tokenizer=tokenizer, texts=texts)
    with pytest.raises(memloc.MemlocError, match=said):
        memloc.swap(**{**call, "labels": labels, "noisy": noisy, **changed})


def test_of_other_functions(lists):
    arguments = (*MODEL, *lists)
    wrong = [
        (memloc.rewind, dict(point="middle"), "rewinding point 'middle'"),
        (memloc.retrain, dict(recipe={"epoch": 1}), "'epoch' is unknown"),
        (memloc.retrain, dict(windows="9-9"), "window '9-9'"),
        *[
            (memloc.retrain, dict(windows=windows), "windows .*expected pairs")
            for windows in ([(2, 1)], [1, 2], 3, [], [(1,)], [(1, 2, 3)], [("1", "2")], [None])
        ],
        (memloc.retrain, dict(windows=[(True, 2)]), "expected pairs"),
        (memloc.retrain, dict(order_seed="1"), "order_seed '1': expected a whole number"),
        (memloc.retrain, dict(memory_mb="1"), "memory_mb '1': expected a number"),
        (memloc.retrain, dict(memory_mb=0), "memory_mb 0: expected a number"),
        (memloc.retrain, dict(recipe=["epochs"]), "expected a dict"),
        *[
            (memloc.probe, dict(seeds=seeds), "seeds")
            for seeds in ([], 3, "12", None, [1, 1], [1.5], [True], [-1])
        ],
        (memloc.probe, dict(recipe={"choose_after": 100}), "^the recipe's choose_after 100 leaves"),
        (memloc.gradients, dict(variant="L3"), "variant 'L3'"),
        (memloc.gradients, dict(objective="hinge"), "objective 'hinge'"),
        (memloc.probe, dict(recipe={"width": 1}), "'width' is unknown"),
        (memloc.probe, dict(states="int8"), "states 'int8'"),
        (memloc.centroids, {}, "centroids need original_labels"),
    ]
    for function, keywords, said in wrong:
        with pytest.raises(memloc.MemlocError, match=said):
            function(*arguments, **keywords)
    for keywords, said in ({}, "give theta_O"), (dict(original=MODEL[1], reference="x"), "'x'"):
        with pytest.raises(memloc.MemlocError, match=said):
            memloc.weight_change(MODEL[0], **keywords)


WRONG = {
    bool: (0, 1, "yes", None),
    int: (-1, 2.5, 2.0, "3", True, None, [3]),
    float: (-1.0, "3e-5", float("nan"), float("inf"), True, None, [0.1]),
}


@pytest.mark.parametrize(
    ("function", "kind", "defaults"),
    [(memloc.retrain, RetrainingRecipe, RETRAINING), (memloc.probe, ProbeRecipe, PROBING)],
)
def test_each_value_of_a_recipe_is_of_its_type_and_in_range(lists, function, kind, defaults):
    kinds = get_type_hints(kind)
    for name, value in defaults.items():
        assert recipe_of(kind, defaults, {name: value}, "a") == kind(**defaults)
        for wrong in WRONG[kinds[name]]:
            with pytest.raises(memloc.MemlocError, match=f"recipe: {name} is .*; expected") as told:
                function(*MODEL, *lists, recipe={name: wrong})
            assert shortly(wrong) in str(told.value)
    for name in set(defaults) - {*MAY_BE_0, "train_head"}:
        with pytest.raises(memloc.MemlocError, match=f"{name} is 0"):
            function(*MODEL, *lists, recipe={name: 0})
    for name in set(defaults) & set(SHARES):
        with pytest.raises(memloc.MemlocError, match=f"{name} is 1.5; .*(1 or less|below 1)"):
            function(*MODEL, *lists, recipe={name: 1.5})


def test_numbers_of_arrays_are_numbers():
    given = {"epochs": np.int64(3), "learning_rate": np.float32(0.5), "weight_decay": 0}
    values = vars(recipe_of(RetrainingRecipe, RETRAINING, given, "a"))
    assert [values[name] for name in given] == [3, 0.5, 0.0]
    assert all(type(values[name]) in (int, float) for name in given)


def test_nothing_speaks_of_configuration_where_there_is_none(lists):
    tokenizer, texts, labels, _ = lists
    most = [True] * 50 + [False] * 40
    with pytest.raises(memloc.MemlocError, match=r"give more clean texts, or fewer noisy ones$"):
        memloc.retrain(*MODEL, tokenizer, texts, labels, most)
    with pytest.raises(memloc.MemlocError, match=r"give both noisy and clean texts$"):
        memloc.gradients(*MODEL, tokenizer, texts, labels, [True] * 90)
    with pytest.raises(memloc.MemlocError, match=r"give more texts, noisy and clean$"):
        memloc.probe(*MODEL, tokenizer, texts, labels, [True] * 90)


KEYS = re.compile(
    r"\b(perturbation|data|probing|retraining|training|filters)\.[a-z]"
    r"|task file|drop_empty|model_sources|history\.tsv|precision: "
)
REACHED = ("data/tokens.py", "models/pooled_states.py", "localise/clean.py", "localise/sweep.py",
           "localise/gradients/gradients.py", "localise/probes", "localise/retrain",
           "explain/centroids.py")  # fmt: skip


def test_every_key_in_an_error_that_a_notebook_can_meet_has_another_word():
    """The errors' own texts in the sources, and none of the words for what is no longer said."""
    found = []
    for place in (ROOT / "workflow/memloc" / name for name in REACHED):
        for file in [place] if place.is_file() else place.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant | ast.JoinedStr):
                    texts = [c.value for c in ast.walk(node) if isinstance(c, ast.Constant)]
                    found.append("".join(text for text in texts if isinstance(text, str)))
    said = [text for text in found if KEYS.search(text) and "\n" not in text]
    assert len(said) >= 10
    for text in said:
        with pytest.raises(memloc.MemlocError) as told, in_notebook_words():
            raise memloc.MemlocError(text)
        assert not KEYS.search(str(told.value)), text
    keys = {f"{top}.{key}" for top, all_ in (("probing", PROBING), ("retraining", RETRAINING))
            for key in all_}  # fmt: skip
    assert not [words for words in set(WORDS) - keys if not any(words in text for text in found)]


def test_the_exam_is_a_switch(lists, monkeypatch):
    """With it, what a technique can't do without is refused; quick checks refuse the rest."""
    from memloc.admission.exam import Outcome
    from memloc.door import session

    outcome = Outcome("attention blocks", "refused", "there is no attention", ("attention",))
    monkeypatch.setattr(session, "examine", lambda *_: [outcome])
    call = (*MODEL, *lists)
    memloc.swap(*call, exam=True, **two.OPTIONS)
    with pytest.raises(memloc.MemlocError, match="there is no attention"):
        memloc.swap(*call, exam=True, component="attention", **two.OPTIONS)


# --- what is accepted ------------------------------------------------------------------------


def test_lists_arrays_tensors_names_and_datasets_are_alike(lists):
    tokenizer, texts, labels, noisy = lists
    expected = memloc.swap(*MODEL, tokenizer, texts, labels, noisy, **two.OPTIONS).windows
    names = [MODEL[0].config.id2label[label] for label in labels]
    columns = {"text": texts, "label": labels, "noisy": noisy}
    dataset = Dataset.from_dict(columns | {"name": names})
    for given in (
        (tuple(texts), np.array(labels), np.array(noisy)),
        (np.array(texts), torch.tensor(labels), [int(mark) for mark in noisy]),
        ([(text,) for text in texts], names, torch.tensor(noisy)),
        (dataset,),
        (dataset, "name", noisy),
    ):
        found = memloc.swap(*MODEL, tokenizer, *given, **two.OPTIONS).windows
        assert found.equals(expected)
    held = Dataset.from_dict({"text": texts[:9], "label": labels[:9]})
    for validation in (held, (texts[:9], labels[:9])):
        found = memloc.swap(*MODEL, tokenizer, dataset, validation=validation, **two.OPTIONS)
        assert (found.windows["n_validation"] == 9).all()
    with pytest.raises(memloc.MemlocError, match="several splits"):
        memloc.swap(*MODEL, tokenizer, DatasetDict(train=dataset))
    with pytest.raises(memloc.MemlocError, match="no column 'mark'"):
        memloc.swap(*MODEL, tokenizer, dataset, noisy="mark")


def test_pairs_are_joined_by_the_separator(lists):
    """Two parts and "w9" between them are the text with w9 in it."""
    tokenizer, texts, labels, noisy = lists
    pairs = memloc.swap(
        *MODEL, tokenizer, [(t, t) for t in texts], labels, noisy, separator="w9", **two.OPTIONS
    )
    joined = [f"{text} w9 {text}" for text in texts]
    whole = memloc.swap(*MODEL, tokenizer, joined, labels, noisy, **two.OPTIONS)
    assert pairs.windows.equals(whole.windows)
    parts = Dataset.from_dict({"a": texts, "b": texts, "label": labels, "noisy": noisy})
    columns = memloc.swap(
        *MODEL, tokenizer, parts, columns=("a", "b"), separator="w9", **two.OPTIONS
    )
    assert columns.windows.equals(whole.windows)
