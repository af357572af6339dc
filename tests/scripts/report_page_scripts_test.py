"""Are the parts of report.html sound without a browser: the template, the colours, and the functions that draw nothing?

The functions run in node; only that case is skipped where node is missing.
"""

import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ASSETS = ROOT / "sim/report/page/assets"
PLACEHOLDERS = ["@TITLE@", "@CSS@", "@D3@", "@SCRIPTS@", "@DATA@"]
TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0  # of WCAG 2.1, success criteria 1.4.3 and 1.4.11
THEMES = {"light": r":root \{(.*?)\}", "dark": r':root\[data-theme="dark"\] \{(.*?)\}',
          "dark of the system": r':root:not\(\[data-theme="light"\]\) \{(.*?)\}'}


def read(name):
    return (ASSETS / name).read_text(encoding="utf-8")


def colours_of(theme):
    """Returns the variables of a theme in page.css."""
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", re.search(THEMES[theme], read("page.css"), re.DOTALL).group(1)))


def luminance(colour):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class Parts(unittest.TestCase):
    def setUp(self):
        self.scripts = sorted(path.name for path in ASSETS.glob("*.js"))

    def test_the_template_has_each_placeholder_once(self):
        template = read("template.html")
        for placeholder in PLACEHOLDERS:
            self.assertEqual(template.count(placeholder), 1, placeholder)
            for name in [*self.scripts, "page.css"]:
                self.assertNotIn(placeholder, read(name), name)

    def test_nothing_is_loaded_from_elsewhere(self):
        for name in [*self.scripts, "page.css", "template.html"]:
            text = read(name).replace("http://www.w3.org/2000/svg", "")
            self.assertIsNone(re.search(r"https?://|@import|\burl\((?!#)|<link[^>]+href=\"(?!data:)|\bfetch\(|XMLHttpRequest", text), name)
        self.assertIn("default-src 'none'", read("template.html"))

    def test_scripts_are_strict_end_no_element_and_share_one_name(self):
        for name in self.scripts:
            text = read(name)
            self.assertNotIn("</script", text, name)
            self.assertNotIn("<!--", text, name)
            self.assertIn('"use strict";', text, name)
            self.assertTrue(text.endswith("})(globalThis.netsimPage = globalThis.netsimPage || {});\n"), name)

    def test_themes_name_the_same_colours(self):
        light = colours_of("light")
        self.assertGreater(len(light), 10)
        self.assertEqual(light.keys(), colours_of("dark").keys())
        self.assertEqual(colours_of("dark"), colours_of("dark of the system"))

    def test_text_is_read_in_both_themes(self):
        for theme in ("light", "dark"):
            colours = colours_of(theme)
            for ground in ("paper", "panel"):
                for text in ("ink", "muted", "accent", "fault"):
                    self.assertGreaterEqual(contrast(colours[text], colours[ground]), TEXT_CONTRAST, (theme, text, ground))

    def test_lines_of_drawings_are_seen_in_both_themes(self):
        for theme in ("light", "dark"):
            colours = colours_of(theme)
            for line in ("edge", "compute", "other", "fault"):
                self.assertGreaterEqual(contrast(colours[line], colours["paper"]), LINE_CONTRAST, (theme, line))

    def test_busier_links_are_told_apart_by_lightness(self):
        for theme in ("light", "dark"):
            colours = colours_of(theme)
            steps = [contrast(colours[f"heat{at}"], colours["paper"]) for at in range(5)]
            self.assertGreater(steps[0], 2, theme)
            for lighter, darker in zip(steps, steps[1:]):
                self.assertGreater(darker, lighter * 1.05, (theme, steps))

    def test_functions_return_what_they_say(self):
        node = shutil.which("node")
        if node is None:
            self.skipTest("node is missing")
        done = subprocess.run([node, str(pathlib.Path(__file__).with_name("report_page_functions.js")), str(ASSETS)], text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
