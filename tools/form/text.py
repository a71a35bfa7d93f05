#!/usr/bin/env python3
"""Finds unfinished and private text in all files of the repository: `text.py`. Run by scripts/form.

First it plants each fault in a folder of its own, and fails if the rule overlooks one, or reports text that is fine."""

import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    # What must be found. The parts are written apart, because this file is searched as well.
    planted: list[str]
    # What looks like it, and is fine.
    fine: list[str]
    # Only in files with these names.
    suffixes: tuple[str, ...] = ()


RULES = [
    Rule(
        "a conflict marker",
        re.compile(r"^(?:<{7}|\|{7}|>{7})(?: |$)|^={7}$"),
        ["<" * 7 + " HEAD", "|" * 7 + " base", "=" * 7, ">" * 7 + " theirs"],
        ["========", "a <<<<<<< b", ">>>>"],
    ),
    Rule(
        "a path of one machine",
        # In /tmp, only folders with the name of the service: scripts make those, and the documentation shows them.
        re.compile(r"(?<![\w.$}-])/(?:home|Users|root|work)/[\w.]|(?<![\w$}-])/tmp/(?!foretell)\w|\bC:\\+Users|\.\./shared\b"),
        ["cd /wo" "rk/main", "'/ho" "me/alice/foretell'", "/Us" "ers/alice", "in /ro" "ot/.cargo", "/t" "mp/x.db", "see ../sh" "ared"],
        ["mktemp -d /tmp/foretell-guide.XXXXXX", "FORETELL_SCREENSHOTS=/tmp cargo", "/v1/home/x", "docs/work/x", "$dir/tmp/x"],
    ),
    Rule(
        "a host of a package registry",
        # Clients know their registry, and machines may use a mirror. Lock files of Cargo name the index of crates.
        re.compile(r"\b(?:crates\.io(?!-index)|npmjs\.(?:org|com)|pypi\.org|pythonhosted\.org|(?:deb|security|ftp|snapshot)\.debian\.org|proxy\.golang\.org)\b|\"resolved\": \"http", re.I),
        ["https://static.cra" "tes.io/x", "registry.np" "mjs.org", "https://py" "pi.org/simple", "files.python" "hosted.org", "http://deb.deb" "ian.org/debian", '"resol' 'ved": "https://mirror.example/x.tgz"'],
        ['source = "registry+https://github.com/rust-lang/crates.io-index"', "registry.example.com", "docker.io/library/rust"],
    ),
    Rule(
        "an empty link",
        re.compile(r"\[[^\[\]]*\]\(\s*#?\s*\)|(?<![\w\])!])\[\s*\]\([^)]"),
        ["[the guide]" "()", "[the guide]" "( )", "see [x]" "(#)", "[]" "(guide.md)"],
        ["- [ ] a task", "`[]`", "![](https://x.example/picture.png)"],
        (".md", ".rs", ".html", ".txt"),
    ),
    Rule(
        "unfinished text",
        re.compile(
            r"\b(?:T[O]DO|FIX[M]E|X[X]X|T[B]D|T[B]C|W[I]P)\b"
            r"|\b(?:todo|unimplemented)!\s*[(\[{]"
            r"|\b(?i:lorem\s+ipsum|coming\s+soon|work\s+in\s+progress|not\s+(?:yet\s+)?implemented|to\s+be\s+(?:defined|determined|decided|documented|completed|continued))\b"
            r"|\?\?\?|<(?:insert|fill in|your text)\b"
        ),
        ["// TO" "DO: the rest", "FIX" "ME", "# X" "XX", "| TB" "D |", "WI" "P", "to" "do!()", "unimple" "mented!(\"x\")", "Lorem " "ipsum dolor", "Coming " "soon", "this is not " "implemented", "to be " "decided", "who??" "?"],
        ["mktemp XXXXXX", "a todo list", "waits to be written", "A method that is implemented"],
    ),
]


LIVE_LINKS = ["[x](guide.md)", "[x](guide.md#second-part-with-more)", "[x](#page)", "[x](https://x.example/y.md)", "`[x](no.md)`"]
DEAD_LINKS = ["[x](no.md)", "[x](guide.md#no)", "[x](#no)", "[x](../no/)"]


def headings_of(path):
    """The anchors of a page's headings."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)", text, re.M)]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def dead_links(folder, name):
    """Links of a page to a file or heading that does not exist."""
    lines = re.sub(r"`[^`\n]*`", "", (folder / name).read_text()).splitlines()
    inside = False
    for number, line in enumerate(lines, 1):
        inside ^= line.startswith("```")
        for target in [] if inside else re.findall(r"\]\(([^)\s]+)\)", line):
            file, _, heading = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = (folder / name).parent / file if file else folder / name
            if not path.exists() or (heading and path.suffix == ".md" and heading not in headings_of(path)):
                yield name, number, "a link that leads nowhere", target


def faults_of(folder, names):
    for name in names:
        path = folder / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" in content:
            continue
        text = content.decode(errors="replace")
        rules = [rule for rule in RULES if not rule.suffixes or name.endswith(rule.suffixes)]
        for rule in rules:
            # Most files have nothing of the kind: look at the lines of the others.
            if not re.search(rule.pattern.pattern, text, rule.pattern.flags | re.M):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if found := rule.pattern.search(line):
                    yield name, number, rule.name, found[0].strip()
        if name.endswith(".md"):
            yield from dead_links(folder, name)


def test_rules():
    """Fails if a planted fault is overlooked, or fine text is reported."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "guide.md").write_text("# One\n\n## Second `part`, with more\n")
        for link in LIVE_LINKS + DEAD_LINKS:
            (folder / "page.md").write_text(f"# Page\n\n{link}\n")
            if bool(list(faults_of(folder, ["page.md"]))) != (link in DEAD_LINKS):
                sys.exit(f"text.py: its own test failed: the link {link!r}")
        for rule in RULES:
            for text in rule.planted + rule.fine:
                (folder / "page.md").write_text(f"The first line\n{text}\nThe last line\n")
                found = [(number, name) for _, number, name, _ in faults_of(folder, ["page.md"])]
                expected = [(2, rule.name)] if text in rule.planted else []
                if found != expected:
                    sys.exit(f"text.py: its own test failed: {text!r} is found as {found}, not as {expected}")


def main():
    test_rules()
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = sorted(set(names.split("\0")) - {""})
    faults = [f"{name}:{number}: {rule}: {found}" for name, number, rule, found in faults_of(ROOT, names)]
    if faults:
        sys.exit("\n".join(faults))
    planted = sum(len(rule.planted) for rule in RULES) + len(DEAD_LINKS)
    print(f"text: {len(names)} files without unfinished or private text; {planted} planted faults were found")


main()
