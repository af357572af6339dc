"""The files and commands of a page: blocks of code whose fence has a name are files, those of `sh` are commands.

    documented.py PAGE.md DIRECTORY    writes the files
"""

import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write(page, directory):
    """Writes the page's files, where they have changed, and returns its commands in their order."""
    directory.mkdir(parents=True, exist_ok=True)
    commands = []
    for language, name, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            commands += text.splitlines()
        elif name:
            path = directory / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
    return commands


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
