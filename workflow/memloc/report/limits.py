"""What limits the answer: what makes it less sure than it reads, the weightiest first."""

from collections.abc import Sequence

from memloc.budget.words import number_of
from memloc.report.found_noise import caveat, finds_noise
from memloc.report.parts import Content
from memloc.report.sections.techniques import nothing_found
from memloc.report.sections.training import weak_runs

CHOSEN = (
    "The windows above were chosen on the examples that their shares are of: on others they would "
    "undo a little less."
)


def foremost(found: Sequence[str]) -> str:
    """The first caveat, and how many more there are."""
    more = f" And {number_of(len(found) - 1, 'other limit')}." if found[1:] else ""
    return f"{found[0]}{more}" if found else ""


def caveats(content: Content) -> list[str]:
    """What makes the answer less sure than it reads."""
    data = content.settings.get("data", {})
    seeds = content.settings.get("model_seeds", [])
    found = [caveat(content)] if finds_noise(content) else []
    weak, runs = weak_runs(content)
    if weak:
        found.append(
            f"{weak} of {number_of(runs, 'run')} on perturbed labels memorised only in part."
        )
    few = [(len(content.tasks), "task"), (len(content.models), "model"), (len(seeds), "seed")]
    small = [number_of(n, word) for n, word in few if 0 < n < 3]
    if small:
        found.append(f"It rests on {', '.join(small)}: too few to speak of others.")
    if data.get("max_train"):
        found.append(
            f"A trial: at most {data['max_train']} training rows per task, inputs cut at "
            f"{data.get('max_length')} tokens."
        )
    found += [f"{content.model_label(n)} is {m['note']}." for n, m in content.models.items()
              if m.get("note")]  # fmt: skip
    if content.has("windows"):
        found.append(CHOSEN)
    found += [f"{line} Their M-CoG doesn't count above." for line in nothing_found(content)]
    return found
