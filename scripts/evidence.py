#!/usr/bin/env python3
"""Prints the measured tables of docs/evidence/data/.

    scripts/evidence.py                      lists the tables: name, rows, and the page that links it
    scripts/evidence.py NAME                 prints one table
    scripts/evidence.py NAME --only TEXT     prints the rows of which a cell contains TEXT

A table is a CSV file. Its header names the columns with their units. The column `produced_by`, where there is one, names the
command or the test behind a row; it is printed once below the table if all rows have the same.
"""
import argparse
import csv
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "evidence" / "data"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


class MalformedTable(Exception):
    """A CSV file that is no table; the message says where and why."""


class Table:
    """The header of a CSV file and its rows; all rows have as many cells as the header."""

    def __init__(self, name, header, rows):
        self.name, self.header, self.rows = name, header, rows


def read(path):
    """Returns the `Table` in a file; raises `MalformedTable`."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, strict=True))
    if len(lines) < 2:
        raise MalformedTable(f"{path.name}: a table has a header and at least one row")
    header, rows = lines[0], lines[1:]
    if any(not name.strip() for name in header):
        raise MalformedTable(f"{path.name}: a column has no name")
    if len(set(header)) < len(header):
        raise MalformedTable(f"{path.name}: two columns have the same name")
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise MalformedTable(f"{path.name}, row {number}: {len(row)} cells, the header has {len(header)}")
    return Table(path.stem, header, rows)


def names():
    return sorted(path.stem for path in DATA.glob("*.csv"))


def linking_pages(name):
    """Returns the pages of docs/ that link a table."""
    link = re.compile(rf"\]\([^)\s]*data/{re.escape(name)}\.csv\)")
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if link.search(page.read_text(encoding="utf-8"))]


def aligned(header, rows):
    """Returns the lines of a table in columns of equal width; numbers stand at the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    right = [all(NUMBER.fullmatch(row[column]) or not row[column] for row in rows) for column in range(len(header))]

    def line(row):
        cells = [cell.rjust(width) if at_right else cell.ljust(width) for cell, width, at_right in zip(row, widths, right)]
        return "  ".join(cells).rstrip()
    return [line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)]


def printed(table, only=None):
    """Returns the lines that `scripts/evidence.py NAME` prints."""
    rows = [row for row in table.rows if only is None or any(only in cell for cell in row)]
    header, common = table.header, None
    if rows and "produced_by" in header:
        column = header.index("produced_by")
        if len({row[column] for row in rows}) == 1:
            common = rows[0][column]
            header = header[:column] + header[column + 1:]
            rows = [row[:column] + row[column + 1:] for row in rows]
    return aligned(header, rows) + ([f"produced by: {common}"] if common else [])


def listed():
    """Returns the lines that `scripts/evidence.py` prints without a name."""
    rows = []
    for name in names():
        pages = [str(page.relative_to(ROOT)) for page in linking_pages(name)]
        rows.append([name, str(len(read(DATA / f"{name}.csv").rows)), ", ".join(pages)])
    return aligned(["table", "rows", "page"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--only", metavar="TEXT", help="print the rows of which a cell contains TEXT")
    options = parser.parse_args()
    if options.name is None:
        if options.only is not None:
            parser.error("--only needs the name of a table")
        lines = listed()
    elif options.name not in names():
        parser.error(f"no table '{options.name}'; scripts/evidence.py lists the tables")
    else:
        lines = printed(read(DATA / f"{options.name}.csv"), options.only)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MalformedTable as error:
        sys.exit(str(error))
    except BrokenPipeError:
        sys.exit(1)
