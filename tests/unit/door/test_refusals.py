"""What can't be done rightly is refused before anything is computed, in a line with the remedy."""

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

import memloc
import study_of_two as two
from memloc.door import windows
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
    "missing text": (dict(texts=["w2"] * 89 + [None]), "row 89 is \\(\\)"),
    "uneven pairs": (dict(texts=[("w2", "w3")] * 89 + ["w2"]), "row 89 is .*as many in every row"),
    "empty text": (dict(texts=["w2"] * 89 + [""]), "row 89 has no token"),
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
    "length": (dict(max_length=0), "max_length 0"),
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
        (memloc.retrain, dict(windows=[(2, 1)]), "expected pairs"),
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
