#!/usr/bin/env python3
"""Checks that comments and pages are written as a colleague can read them at once.

    scripts/words.py FILE...           every comment block and paragraph of these files
    scripts/words.py --count           how many findings each tracked file has, the largest number first

The rules: a comment block is made of whole sentences and does not begin as a fragment; a sentence does not begin with
"Of" and has at most 25 words; a table row of a page has at most 160 characters; a retired word is not used again. Files
are C++ sources and headers, Python, shell, CMake, YAML and Markdown; others are ignored. The exit code is 1 when something
was found.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS = 25
LONGEST_ROW = 160
FRAGMENT = re.compile(r"(Of|What|Who|Whose|Which|That|Those)\b")
# A metaphor or a word of our own, and the term of the field that replaces it.
RETIRED = {
    "witness": "digest of an update",
    "lead on": "reroute",
    "door": "public header",
    "doors": "public headers",
    "books": "statistics",
    "mail": "remote event",
}
RETIRED_WORD = re.compile(r"\b(" + "|".join(RETIRED) + r")\b", re.IGNORECASE)
# How the comments of a kind of file begin.
MARKS = {".h": "//", ".cpp": "//", ".proto": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#",
         ".yaml": "#"}


class Finding:
    """A place of a file and what is wrong there."""

    def __init__(self, path, line, text):
        self.path, self.line, self.text = path, line, text

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


Comment = collections.namedtuple("Comment", "beside_code column text")


class Block:
    """A comment block or a paragraph: its lines, each with its number in the file."""

    def __init__(self):
        self.lines = []

    def add(self, number, text):
        self.lines.append((number, text))

    def text(self):
        return " ".join(text for _, text in self.lines)

    def line_of(self, offset):
        """The number of the line in which a character of `text()` stands."""
        for number, text in self.lines:
            if offset <= len(text):
                return number
            offset -= len(text) + 1
        return self.lines[-1][0]


def comment_of(line, mark):
    """Returns the `Comment` of a line, or None for a line without one."""
    # A mark inside a string is no comment: strings are replaced by spaces of their length.
    blanked = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', lambda string: " " * len(string.group()), line)
    at = blanked.find(mark)
    if at < 0 or (at > 0 and not blanked[at - 1].isspace()):
        return None
    text = line[at + len(mark):]
    if text.startswith("   "):  # an example of code or of a file
        text = ""
    if text.startswith("!") or (text and not text[0].isspace()):  # a shebang, or a divider such as ////
        return None
    return Comment(blanked[:at].strip() != "", at, text.strip())


def comment_blocks(lines, mark):
    """Yields the comment blocks of a source file. A comment beside code goes on in lines that begin at its column."""
    block, column = Block(), None
    for number, line in enumerate(lines, 1):
        comment = comment_of(line, mark)
        goes_on = comment is not None and not comment.beside_code and comment.text and comment.column == column
        if not goes_on and block.lines:
            yield block
            block = Block()
        column = comment.column if comment is not None else None
        if comment is not None and comment.text and not comment.text.startswith("NOLINT"):
            block.add(number, comment.text)
    if block.lines:
        yield block


def paragraphs(lines):
    """Yields the paragraphs and list items of a page; code, tables, headings and pictures are left out."""
    block, fenced = Block(), False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("```"):
            fenced = not fenced
        skipped = fenced or not text or text.startswith(("```", "|", "#", "![", "<", ">")) or line.startswith("    ")
        item = re.match(r"([-*]|\d+\.)\s+", text)
        if (skipped or item) and block.lines:
            yield block
            block = Block()
        if not skipped:
            block.add(number, text[item.end():] if item else text)
    if block.lines:
        yield block


def sentences(text):
    """Yields (offset, sentence) of a text. A sentence ends at a period, question or exclamation mark before a space."""
    begin = 0
    for end in re.finditer(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)(?<!\bal)[.!?][)\"*_]*(?=\s)", text):
        yield begin, text[begin:end.end()]
        begin = end.end()
    if text[begin:].strip():
        yield begin, text[begin:]


def words(sentence):
    """Returns how many words a sentence has; code in backticks and a link's address count as one and none."""
    sentence = re.sub(r"\]\([^)]*\)", "]", sentence)
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def check_block(path, block, is_comment):
    """Yields the findings of a block's sentences."""
    for offset, sentence in sentences(block.text()):
        begin = offset + len(sentence) - len(sentence.lstrip())
        line = block.line_of(begin)
        excerpt = sentence.strip()[:60]
        if sentence.lstrip().startswith("Of "):
            yield Finding(path, line, f"begins with 'Of': '{excerpt}'; begin with the subject")
        elif is_comment and offset == 0 and FRAGMENT.match(sentence):
            yield Finding(path, line, f"begins as a fragment: '{excerpt}'; write a sentence with a subject")
        count = words(sentence)
        if count > MOST_WORDS:
            yield Finding(path, line, f"a sentence of {count} words, more than {MOST_WORDS}: '{excerpt}'")
        for word in RETIRED_WORD.finditer(re.sub(r"`[^`]*`", lambda code: " " * len(code.group()), sentence)):
            yield Finding(path, block.line_of(offset + word.start()),
                          f"'{word.group()}' is a retired word: write '{RETIRED[word.group().lower()]}'")


def check(path, lines):
    """Yields the findings of a file."""
    kind = path.suffix
    if kind == ".md":
        for number, line in enumerate(lines, 1):
            if line.startswith("|") and len(line) > LONGEST_ROW:
                yield Finding(path, number, f"a table row of {len(line)} characters, more than {LONGEST_ROW}")
        blocks = paragraphs(lines)
    elif kind in MARKS:
        blocks = comment_blocks(lines, MARKS[kind])
    else:
        return
    for block in blocks:
        yield from check_block(path, block, kind != ".md")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines()


def known(path):
    return pathlib.Path(path).suffix == ".md" or pathlib.Path(path).suffix in MARKS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    if bool(options.files) == options.count:
        parser.error("give files or --count")

    if options.count:
        counts = {path: len(list(check(pathlib.Path(path), read(path)))) for path in git("ls-files").splitlines() if known(path)}
        for path, count in sorted(counts.items(), key=lambda entry: -entry[1]):
            if count:
                print(f"{count:6} {path}")
        print(f"{sum(counts.values()):6} in all")
        return 0

    findings = []
    for name in options.files:
        path = pathlib.Path(name).resolve()
        path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        findings += check(path, read(path))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
