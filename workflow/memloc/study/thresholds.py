"""Numbers that say from when on a result means something."""

# A run that predicts fewer of its noisy labels has memorised in part only: where it memorises is
# less certain, and what it never learnt counts as an error of every window.
MEMORISED_SHARE = 0.95
