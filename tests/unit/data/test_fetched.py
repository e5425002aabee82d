"""What target fetch says of what it has fetched."""

import logging

from memloc.data.fetched import COLUMNS, write_fetched
from memloc.store.files import write_json
from memloc.store.tables import read_tsv


def test_every_task_and_model_has_a_line_with_source_commit_and_size(tmp_path, caplog):
    tasks, models, sources = {}, {}, {
        "own": {"kind": "files", "files": {"mine/a.csv": "1", "mine/b.csv": "2"}},
        "hub": {"kind": "dataset", "repository": "me/set", "commit": "abc", "files": {}},
        "pack": {"kind": "package", "package": "rows==1", "files": {}},
    }  # fmt: skip
    for name, source in sources.items():
        (tmp_path / name).write_bytes(b"1234")
        facts = {"source": source, "rows": {"train": 5, "heldout": 2}}
        write_json(tmp_path / f"{name}.json", facts)
        tasks[name] = (str(tmp_path / name), str(tmp_path / f"{name}.json"))
    for name, facts in {"bert": {"source": {"hub": "x/bert"}, "commit": "def"},
                        "tiny": {"source": {"folder": "tiny-bert"}}}.items():  # fmt: skip
        write_json(tmp_path / f"models/{name}/manifest.json", {**facts, "parameters": 1000})
        models[name] = str(tmp_path / f"models/{name}")
    with caplog.at_level(logging.INFO):
        write_fetched(tmp_path / "fetched.tsv", tasks, models)
    table = read_tsv(tmp_path / "fetched.tsv", COLUMNS).set_index("name")
    assert table["source"].to_dict() == {
        **{"own": "files mine", "hub": "dataset me/set", "pack": "package rows==1"},
        **{"bert": "hub x/bert", "tiny": "folder tiny-bert"},
    }
    assert table.loc["hub", ["kind", "commit", "size", "bytes"]].tolist() == ["task", "abc", 7, 4]
    assert table.loc["bert", "commit"] == "def" and table.loc["bert", "bytes"] > 0
    assert "task hub: 7 rows, 4 bytes, from dataset me/set at abc" in caplog.text
    assert "5 tasks and models are here" in caplog.text
