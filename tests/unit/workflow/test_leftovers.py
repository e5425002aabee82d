"""Jobs that a killed driver left behind, from what squeue prints."""

from leftovers import leftover_refusal, parse_listing

LISTING = """\
12|c0ffee|rule_train_perturbed_wildcards_toy_tiny_1|/home/me/study
13|c0ffee|group_figures|/home/me/study
14|c0ffee|rule_probe|/home/me/other study
15|driver.sh|(null)|/home/me/study
16|f00d|rule_retrain_wildcards_a|b_1|/home/me/study
16|f00d|rule_retrain_wildcards_a|b_1|/home/me/study

"""


def test_jobs_of_this_folder_by_run():
    assert parse_listing(LISTING, "/home/me/study") == {"c0ffee": ["12", "13"], "f00d": ["16"]}
    assert parse_listing(LISTING, "/home/me/other study") == {"c0ffee": ["14"]}
    assert parse_listing("", "/home/me/study") == {}


def test_the_refusal_names_jobs_and_remedy():
    said = leftover_refusal(parse_listing(LISTING, "/home/me/study"))
    assert "12, 13, 16" in said and "scancel --name=c0ffee; scancel --name=f00d" in said
    assert leftover_refusal({}) is None
