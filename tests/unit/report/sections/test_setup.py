"""The page's setup says what the models are and what came of their admission exams."""

from memloc.report.parts import Content
from memloc.report.sections.setup import build
from memloc.store.files import write_json


def outcome(check, result, measured, *needed_by):
    return {"check": check, "outcome": result, "measured": measured, "needed_by": needed_by}


def test_a_models_exam_is_shown(tmp_path):
    write_json(
        tmp_path / "manifest.json",
        {
            "architecture": "EuroBertForSequenceClassification",
            "n_layers": 3,
            "longest_input": None,
            "notes": ["its pooler is new"],
            "exam": [
                outcome("layers form a chain", "passed", "logits differ by at most 0"),
                outcome("token that is read", "refused", "it reads all", "probing", "centroids"),
            ],
        },
    )
    content = Content(
        "t",
        {},
        [],
        models={"mine": {"label": "Mine"}, "other": {}},
        tasks={},
        settings={},
        templates="",
        manifests={"mine": str(tmp_path / "manifest.json"), "other": str(tmp_path / "none.json")},
    )
    (part,) = [part for part in build(content).parts if part.title == "Models"]
    assert part.facts == [
        (
            "Mine",
            "EuroBertForSequenceClassification, 3 layers, reads inputs of any length; passed 1 of "
            "2 checks; its pooler is new; not for probing and centroids",
        )
    ]
    (text,) = part.texts
    assert text["title"] == "Admission exam of Mine"
    assert "refused  token that is read: it reads all" in text["text"]
