"""Are the measured tables of docs/evidence/data/ tables, does a page link each of them, and does scripts/evidence.py print them?"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import evidence

PATH = re.compile(r"(?<![\w/])(?:configs|scripts|tests|traces)/[\w./]*\w")


class Tables(unittest.TestCase):
    def for_each(self, check):
        self.assertGreater(len(evidence.names()), 40)
        for name in evidence.names():
            with self.subTest(name):
                check(evidence.read(evidence.DATA / f"{name}.csv"))

    def test_each_is_a_table_whose_columns_have_plain_names(self):
        def check(table):
            for name in table.header:
                self.assertRegex(name, r"^\w[\w.]*$", "letters, digits and underscores")
        self.for_each(check)

    def test_no_column_is_empty(self):
        def check(table):
            for column, name in enumerate(table.header):
                self.assertTrue(any(row[column].strip() for row in table.rows), name)
        self.for_each(check)

    def test_a_page_links_each(self):
        self.for_each(lambda table: self.assertTrue(evidence.linking_pages(table.name), "no page links it"))

    def test_the_files_that_produced_them_exist(self):
        def check(table):
            if "produced_by" in table.header:
                column = table.header.index("produced_by")
                for path in {path for row in table.rows for path in PATH.findall(row[column])}:
                    self.assertTrue((ROOT / path).exists(), path)
        self.for_each(check)


class Malformed(unittest.TestCase):
    def refused(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.csv"
            path.write_text(text)
            with self.assertRaises(evidence.MalformedTable) as raised:
                evidence.read(path)
            return str(raised.exception)

    def test_what_is_no_table_is_refused_with_its_place(self):
        self.assertIn("at least one row", self.refused("a,b\n"))
        self.assertIn("no name", self.refused("a,\n1,2\n"))
        self.assertIn("the same name", self.refused("a,a\n1,2\n"))
        self.assertIn("row 3: 1 cells", self.refused("a,b\n1,2\n3\n"))


class Printing(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, ROOT / "scripts" / "evidence.py", *arguments], capture_output=True, text=True, check=False)

    def test_a_cause_that_all_rows_share_stands_below_the_table(self):
        table = evidence.Table("a", ["size", "us", "produced_by"], [["1 B", "9.5", "t"], ["64 B", "10", "t"]])
        self.assertEqual(evidence.printed(table), ["size   us", "----  ---", "1 B   9.5", "64 B   10", "produced by: t"])

    def test_causes_that_differ_stay_in_the_table(self):
        table = evidence.Table("a", ["us", "produced_by"], [["1", "t"], ["2", "u"]])
        self.assertEqual(evidence.printed(table), ["us  produced_by", "--  -----------", " 1  t", " 2  u"])
        self.assertEqual(evidence.printed(table, "2"), ["us", "--", " 2", "produced by: u"])

    def test_all_are_listed_and_one_is_printed(self):
        listing = self.run_script()
        self.assertEqual(listing.returncode, 0, listing.stderr)
        listed = [line.split()[0] for line in listing.stdout.splitlines()[2:]]
        self.assertEqual(listed, evidence.names())
        for name in listed:
            self.assertTrue(evidence.printed(evidence.read(evidence.DATA / f"{name}.csv")))
        self.assertIn("load", self.run_script("queue_wait").stdout)

    def test_a_name_that_is_none_is_refused(self):
        refused = self.run_script("nothing")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("no table 'nothing'", refused.stderr)


if __name__ == "__main__":
    unittest.main()
