"""Does scripts/pictures.sh make each picture of docs/pictures/, does a page show each, and does each have an alternative text?"""

import pathlib
import re
import subprocess
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
SVG = "{http://www.w3.org/2000/svg}"


def listed():
    done = subprocess.run([ROOT / "scripts" / "pictures.sh", "--list"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def shown():
    """(page, alternative text, file) of each picture that a page shows."""
    return [(page, text, (page.parent / path).resolve())
            for page in PAGES for text, path in SHOWN.findall(page.read_text(encoding="utf-8"))]


class Pictures(unittest.TestCase):
    def test_the_script_lists_each_picture_once(self):
        self.assertEqual(sorted(f"{name}.svg" for name in listed()), sorted(path.name for path in PICTURES.iterdir()))

    def test_a_page_shows_each_picture(self):
        self.assertEqual(sorted(set(PICTURES.iterdir()) - {path for _, _, path in shown()}), [])

    def test_no_page_shows_what_is_missing(self):
        self.assertEqual([(str(page), str(path)) for page, _, path in shown() if not path.is_file()], [])

    def test_alternative_texts_say_what_is_seen(self):
        for page, text, path in shown():
            with self.subTest(page=page, picture=path.name):
                self.assertGreaterEqual(len(text.split()), 4, "an alternative text is a phrase about what is seen")

    def test_pictures_have_a_background_and_no_fonts(self):
        for path in sorted(PICTURES.iterdir()):
            with self.subTest(path.name):
                text = path.read_text(encoding="utf-8")
                self.assertNotIn("@font-face", text)
                root = xml.etree.ElementTree.fromstring(text)
                fills = [shape.get("fill") or re.sub(r"fill: ([^;]+).*", r"\1", shape.get("style") or "")
                         for shape in root.iter() if shape.tag in (f"{SVG}rect", f"{SVG}path")]
                self.assertIn(fills[0], ("white", "#ffffff"), "the first shape is the background")


if __name__ == "__main__":
    unittest.main()
