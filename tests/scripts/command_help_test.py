"""Do the completions of `netsim --completion` complete what they should, and is the manual page one?

NETSIM_BINARY names the program. The completion of bash is played by bash; zsh and man look at theirs where they are installed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUBCOMMANDS = ["describe-trace", "convert", "compare"]
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")


def ask(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, check=True).stdout


def options():
    """The options that --help lists."""
    return re.findall(r"^  --([a-z-]+)", ask("--help"), re.MULTILINE)


def command_options(name):
    """The options of a subcommand that --help lists."""
    usage = re.search(rf"\n  netsim {name} (.*?)\n(\n|  netsim)", ask("--help"), re.DOTALL).group(1)
    return re.findall(r"--([a-z-]+)", usage)


def subcommand_options():
    return [option for name in SUBCOMMANDS for option in command_options(name)]


class CommandHelp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_command_help_"))
        for shell in ("bash", "zsh"):
            (cls.folder / shell).write_text(ask("--completion", shell))
        (cls.folder / "netsim.1").write_text(ask("--man"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def completed(self, *words):
        """What bash offers for the last of the words."""
        play = (f"source {self.folder / 'bash'}; COMP_WORDS=(netsim \"$@\"); COMP_CWORD=$#; _netsim; "
                "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", play, "bash", *words], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [word for word in done.stdout.splitlines() if word]

    def test_bash_completes_options(self):
        self.assertEqual(self.completed("--"), [f"--{name}" for name in options()])
        self.assertEqual(self.completed("--conf"), ["--config"])

    def test_bash_completes_values(self):
        self.assertEqual(self.completed("--describe", "dcqc"), ["dcqcn"])
        self.assertIn("congestion_control", self.completed("--list", "congestion"))
        self.assertEqual(self.completed("--set", "transport.mt"), ["transport.mtu="])
        self.assertEqual(self.completed("--log", "wa"), ["warn"])
        self.assertEqual(self.completed("--completion", ""), ["bash", "zsh"])
        self.assertIn("ring", self.completed("--show-schedule", "ri"))
        self.assertEqual(self.completed("--config", "x"), [])  # files, by bash itself

    def test_bash_completes_comparisons(self):
        self.assertEqual(self.completed("comp"), ["compare"])
        for command in SUBCOMMANDS:
            self.assertEqual(self.completed(command, "--"), [f"--{name}" for name in command_options(command)])
        self.assertEqual(self.completed("compare", "a", "--sig"), ["--significance"])
        self.assertEqual(self.completed("compare", "a"), [])  # folders, by bash itself

    @unittest.skipIf(shutil.which("zsh") is None, "no zsh")
    def test_zsh_reads_its_script(self):
        subprocess.run(["zsh", "-n", self.folder / "zsh"], check=True)

    def test_zsh_has_all_options(self):
        text = (self.folder / "zsh").read_text()
        self.assertTrue(text.startswith("#compdef netsim\n"))
        self.assertEqual(re.findall(r"^  '\*?--([a-z-]+)\[", text, re.MULTILINE), options())
        self.assertEqual(re.findall(r"^      '\*?--([a-z-]+)\[", text, re.MULTILINE), subcommand_options())

    def test_the_manual_page_has_all_options_and_exit_codes(self):
        text = (self.folder / "netsim.1").read_text()
        self.assertTrue(text.startswith(".TH NETSIM 1 "))
        found = re.findall(r"^\.TP\n\\fB\\-\\-([a-z\\-]+)\\fR", text, re.MULTILINE)
        self.assertEqual([name.replace("\\-", "-") for name in found], options())
        found = re.findall(r"^\.IP \"\\fB\\-\\-([a-z]+)", text, re.MULTILINE)
        self.assertEqual(found, subcommand_options())
        self.assertEqual(re.findall(r"^\.B (\d+)$", text, re.MULTILINE), ["0", "1", "2", "3", "4", "5", "6", "130"])

    @unittest.skipIf(shutil.which("man") is None or shutil.which("groff") is None, "no man")
    def test_man_formats_the_page_without_a_warning(self):
        done = subprocess.run(["man", "--warnings", "-l", self.folder / "netsim.1"], capture_output=True, text=True, check=True,
                              env=dict(os.environ, MANPAGER="cat", MANWIDTH="80"))
        self.assertEqual(done.stderr, "")
        self.assertIn("--show-schedule", done.stdout.replace("\b", ""))

    def test_another_shell_is_refused(self):
        done = subprocess.run([BINARY, "--completion", "fish"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("allowed: bash, zsh", done.stderr)


if __name__ == "__main__":
    unittest.main()
