"""The part of the page on swapping without noise: how much of the error is mixing two networks."""

from memloc.budget.words import number_of, percent
from memloc.report.parts import Content, Part
from memloc.report.tables import table
from memloc.summary.no_noise import ONE

TITLE = "Memorisation or mixing?"
INTRO = (
    "Layers of two networks that are mixed cause errors even where nothing is memorised. The "
    "clean error of the same windows is one measure of that; another is the error of the same "
    "examples when windows are swapped between two seeds' θ_O, which never saw a perturbed label "
    "(mixing error). These two differ more than θ_M2 and θ_O of one seed do, so that it is rather "
    "an upper bound."
)
SAID = (
    " {over} (task × model), swapping one layer reverts {noisy} of the noisy examples; the clean "
    "error of these windows is {clean}, and the mixing error of one layer {mixing}."
)


def no_noise_part(content: Content) -> Part:
    """A table of errors with and without noise, and a sentence on windows of one layer."""
    made = table(content, "no_noise", "Errors of swapping with noise and without, mean over seeds")
    if not content.has("no_noise"):
        return Part(TITLE, tables=[made])
    frame = content.read("no_noise")
    one = frame[frame["windows"] == ONE]
    mean = one[["noisy_error", "clean_error", "mixing_error"]].mean()
    over = f"{'On average over' if len(one) > 1 else 'In'} {number_of(len(one), 'case')}"
    noisy, clean, mixing = (percent(share, 1) for share in mean)
    said = SAID.format(over=over, noisy=noisy, clean=clean, mixing=mixing)
    return Part(TITLE, INTRO + said, tables=[made])
