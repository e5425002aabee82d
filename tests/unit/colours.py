"""How far apart colours look: CIE Lab, and the distance CIEDE2000 (Sharma, Wu & Dalal 2005)."""

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt


def lab(colour):
    """L*, a*, b* of "#rrggbb" or of three numbers from 0 to 1, for daylight (D65)."""
    if isinstance(colour, str):
        colour = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    white = (0.95047, 1.0, 1.08883)
    xyz = (
        0.4124564 * r + 0.3575761 * g + 0.1804375 * b,
        0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
        0.0193339 * r + 0.1191920 * g + 0.9503041 * b,
    )
    ratios = (part / whole for part, whole in zip(xyz, white, strict=True))
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other):
    """CIEDE2000 of two colours in Lab; about 2 is the least that one sees side by side."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c = (hypot(a1, b1) + hypot(a2, b2)) / 2
    g = 0.5 * (1 - sqrt(c**7 / (c**7 + 25**7)))
    c1, c2 = hypot((1 + g) * a1, b1), hypot((1 + g) * a2, b2)
    h1 = degrees(atan2(b1, (1 + g) * a1)) % 360 if c1 else 0.0
    h2 = degrees(atan2(b2, (1 + g) * a2)) % 360 if c2 else 0.0
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dl, dc, dh = l2 - l1, c2 - c1, 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    ml, mc = (l1 + l2) / 2, (c1 + c2) / 2
    mh = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = (1 - 0.17 * cos(radians(mh - 30)) + 0.24 * cos(radians(2 * mh))
         + 0.32 * cos(radians(3 * mh + 6)) - 0.20 * cos(radians(4 * mh - 63)))  # fmt: skip
    sl = 1 + 0.015 * (ml - 50) ** 2 / sqrt(20 + (ml - 50) ** 2)
    sc, sh = 1 + 0.045 * mc, 1 + 0.015 * mc * t
    rc = 2 * sqrt(mc**7 / (mc**7 + 25**7))
    rt = -rc * sin(radians(60 * exp(-(((mh - 275) / 25) ** 2))))
    parts = dl / sl, dc / sc, dh / sh
    return sqrt(sum(part**2 for part in parts) + rt * parts[1] * parts[2])
