"""The first screen's colours: told apart in grey, and with numbers that can be read on them."""

from memloc.report.explorer import luminance, ramp, white_from


def test_luminance_is_that_of_wcag():
    assert luminance("#ffffff") == 1 and luminance("#000000") == 0
    assert abs(luminance("#777777") - 0.1845) < 1e-4  # 4.48:1 on white, a well-known near miss


def test_darker_is_more():
    lights = [luminance(colour) for colour in ramp()]
    assert lights == sorted(lights, reverse=True) and len(set(lights)) == len(lights)


def test_every_number_can_be_read():
    colours = ramp()
    for step, colour in enumerate(colours):
        ink = 1.0 if step >= white_from(colours) else 0.0
        light, dark = sorted((luminance(colour), ink), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
