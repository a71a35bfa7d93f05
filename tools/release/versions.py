#!/usr/bin/env python3
"""The version of a release, and every place that has it. Run by scripts/release.

    versions.py                                prints the version
    versions.py check [TAG]                    fails unless all places agree; with a tag, also if the release is not prepared
    versions.py notes [VERSION]                prints the release notes, which are a section of the changelog
    versions.py prepare VERSION REPOSITORY     writes a new version to all places, for a repository such as https://HOST/OWNER/NAME
    versions.py test                           plants a fault in each place, and fails if `check` overlooks one
"""

import datetime
import email.utils
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = r"\d+\.\d+\.\d+"
START, END = "<!-- scripts/release prepare writes this part. -->\n", "<!-- The end of that part. -->\n"
# Each place: its file, and what surrounds the version there.
PLACES = [
    ("Cargo.toml", r'(?<=\[workspace\.package\]\nversion = ")', '"'),
    ("clients/python/src/foretell/_version.py", r'(?<=^__version__ = ")', '"'),
    ("clients/typescript/package.json", r'(?<=^  "version": ")', '"'),
    ("clients/typescript/package-lock.json", r'(?<=^  "version": ")', '"'),
    ("clients/typescript/package-lock.json", r'(?<="name": "@foretell/client",\n      "version": ")', '"'),
    ("clients/typescript/README.md", r"(?<=foretell-client-)", r"\.tgz"),
    ("docs/clients.md", r"(?<=foretell-client-)", r"\.tgz"),
    ("deploy/helm/foretell/Chart.yaml", r"(?<=^version: )", "$"),
    ("deploy/helm/foretell/Chart.yaml", r"(?<=^appVersion: )", "$"),
    ("deploy/debian/changelog", r"(?<=\Aforetell \()", r"-1\)"),
    ("crates/api/src/v1/openapi/examples/getHealth.200.json", r'(?<=^  "version": ")', '"'),
]
LOCKS = ["Cargo.lock", "fuzz/Cargo.lock"]
DOCUMENTS = {"trading-api": [], "public-read-api": ["--public"]}


def version_in(root):
    text = (root / "Cargo.toml").read_text()
    return re.search(r'^\[workspace\.package\]\nversion = "(.*)"', text, re.M)[1]


def members(root):
    """The names of the workspace's crates."""
    files = [*root.glob("crates/*/Cargo.toml"), root / "clients/rust/Cargo.toml"]
    return {re.search(r'^name = "(.*)"', file.read_text(), re.M)[1] for file in files}


def places(root):
    """Every place, as its file, and a pattern that matches exactly the version there."""
    for file, before, after in PLACES:
        yield file, re.compile(rf"{before}{VERSION}(?={after})", re.M)
    for file in LOCKS:
        for name in sorted(members(root)):
            place = re.compile(rf'(?<=^name = "{re.escape(name)}"\nversion = "){VERSION}(?="\n(?!source))', re.M)
            if place.search((root / file).read_text()):
                yield file, place


def section(changelog, heading):
    """The text below a heading of the changelog, without blank lines around it."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return found and found[1].strip()


def install_part(root):
    readme = (root / "README.md").read_text()
    begin, end = readme.index(START) + len(START), readme.index(END)
    return readme[begin:end]


def faults(root, tag=None):
    version = version_in(root)
    for file, place in places(root):
        found = place.findall((root / file).read_text())
        if found != [version]:
            yield f"{file}: has {' and '.join(found) or 'no version'} in the place of {version}: {place.pattern!r}"
    changelog = (root / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.*)", changelog, re.M)
    released = [heading for heading in headings if heading != "Unreleased"]
    if not released or not re.fullmatch(rf"{re.escape(version)}, \d{{4}}-\d\d-\d\d", released[0]):
        yield f"CHANGELOG.md: its newest release is {released[:1]}, not {version} with a date"
    elif not section(changelog, re.escape(released[0])):
        yield f"CHANGELOG.md: {version} has no notes"
    for name in DOCUMENTS:
        if not (root / f"docs/openapi/{name}-{version}.json").is_file():
            yield f"docs/openapi: {name}-{version}.json is missing"
    named = set(re.findall(rf"releases/download/v({VERSION})", install_part(root)))
    if named - {version}:
        yield f"README.md: downloads {' and '.join(sorted(named))}, not {version}"
    if tag is None:
        return
    if tag != f"v{version}":
        yield f"the tag is {tag}, and the version {version}"
    if headings[0] == "Unreleased":
        yield "CHANGELOG.md: has unreleased changes: run scripts/release prepare"
    if not named:
        yield "README.md: does not show how to download: run scripts/release prepare"


def check(root, tag=None):
    found = list(faults(root, tag))
    if found:
        sys.exit("\n".join(found))


def notes(root, version):
    text = section((root / "CHANGELOG.md").read_text(), re.escape(version) + r", [^\n]*")
    if not text:
        sys.exit(f"CHANGELOG.md has no section of {version}")
    # Entries are wrapped and begin with a dash. The page of a release shows each line break.
    text = re.sub(r"\n +(?=\S)(?!\s*-)", " ", text)
    # On the page of a release, links must lead to the files of its commit. The README of a prepared release names the host.
    host = re.search(r"\((https://\S+)/releases/tag/", install_part(root))
    return re.sub(r"\]\((?!https?:|#)", f"]({host[1]}/blob/v{version}/", text) if host else text


def replace_once(path, pattern, text):
    content, count = re.subn(pattern, lambda _: text, path.read_text(), count=1, flags=re.M)
    if count != 1:
        sys.exit(f"{path}: has no {pattern!r}")
    path.write_text(content)


def add_repository(root, repository):
    """Names the repository in the packages of the clients. Npm's provenance requires it."""
    manifest = root / "clients/rust/Cargo.toml"
    if "\nrepository = " not in manifest.read_text():
        replace_once(manifest, r'(?<=^readme = "README\.md"\n)', f'repository = "{repository}"\n')
    project = root / "clients/python/pyproject.toml"
    if "[project.urls]" not in project.read_text():
        replace_once(project, r"(?=^\[tool\.hatch\.version\])", f'[project.urls]\nRepository = "{repository}"\n\n')
    package = root / "clients/typescript/package.json"
    if '"repository": ' not in package.read_text():
        value = json.dumps({"type": "git", "url": f"git+{repository}.git", "directory": "clients/typescript"})
        replace_once(package, r'(?=^  "keywords": )', f'  "repository": {value.replace("{", "{ ").replace("}", " }")},\n')


def without_texts(value):
    """A document without descriptions and examples, as docs/openapi keeps it."""
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_texts(each)
        for key, each in value.items()
        if key not in ("example", "examples") and not (key in ("description", "summary") and isinstance(each, str))
    }


def prepare(root, version, repository, now, openapi):
    if not re.fullmatch(VERSION, version) or not re.fullmatch(r"https://[\w.-]+(?:/[\w.-]+)+", repository):
        sys.exit("usage: versions.py prepare VERSION REPOSITORY, such as 1.2.3 and https://HOST/OWNER/NAME")
    check(root)
    numbers = lambda text: [int(number) for number in text.split(".")]  # noqa: E731
    if numbers(version) <= numbers(version_in(root)):
        sys.exit(f"{version} is not above {version_in(root)}")
    changelog = (root / "CHANGELOG.md").read_text()
    if not section(changelog, "Unreleased"):
        sys.exit("CHANGELOG.md has no unreleased changes")
    debian = root / "deploy/debian/changelog"
    maintainer = re.search(r"^ -- (.*)  ", debian.read_text(), re.M)[1]
    entry = f"foretell ({version_in(root)}-1) unstable; urgency=medium\n\n  * The changes of the service are in its CHANGELOG.md.\n\n"
    debian.write_text(entry + f" -- {maintainer}  {email.utils.format_datetime(now)}\n\n" + debian.read_text())
    for file, place in list(places(root)):
        replace_once(root / file, place.pattern, version)
    replace_once(root / "CHANGELOG.md", r"^## Unreleased$", f"## {version}, {now.date()}")
    text = (HERE / "install.template").read_text().format(version=version, repository=repository)
    (root / "README.md").write_text((root / "README.md").read_text().replace(install_part(root), text))
    add_repository(root, repository)
    for name, flags in DOCUMENTS.items():
        document = json.dumps(without_texts(json.loads(openapi(flags))), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (root / f"docs/openapi/{name}-{version}.json").write_text(document + "\n")
    check(root, f"v{version}")


def print_document(flags):
    """What the service says about its API."""
    binary = subprocess.check_output([ROOT / "scripts/binary"], text=True).strip()
    return subprocess.check_output([binary, "openapi", *flags])


def test():
    now = datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    repository = "https://git.example/owner/name"
    touched = {file for file, *_ in PLACES} | set(LOCKS) | {"README.md", "CHANGELOG.md", "clients/python/pyproject.toml"}
    touched |= {str(file.relative_to(ROOT)) for file in [*ROOT.glob("crates/*/Cargo.toml"), ROOT / "clients/rust/Cargo.toml"]}
    planted = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file in touched:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)
        shutil.copytree(ROOT / "docs/openapi", root / "docs/openapi")
        if section((root / "CHANGELOG.md").read_text(), "Unreleased") is None:
            replace_once(root / "CHANGELOG.md", r"(?=^## )", "## Unreleased\n\n- A change.\n\n")
        before = version_in(root)

        def must_refuse(file, change, tag="v999.0.0"):
            nonlocal planted
            sound = (root / file).read_text()
            changed = change(sound)
            (root / file).write_text(changed)
            if changed == sound or not list(faults(root, tag)):
                sys.exit(f"versions.py: its own test failed: a fault planted in {file} was overlooked")
            (root / file).write_text(sound)
            planted += 1

        must_refuse("README.md", lambda text: text + "\n", tag=f"v{before}")
        prepare(root, "999.0.0", repository, now, lambda _: '{"description": "x", "info": {"examples": []}}')
        for file, place in list(places(root)):
            must_refuse(file, lambda text, place=place: place.sub("999.0.1", text))
        must_refuse("CHANGELOG.md", lambda text: text.replace("## 999.0.0, 2030-01-02", "## 999.0.0"))
        must_refuse("CHANGELOG.md", lambda text: re.sub(r"(## 999[^\n]*\n).*?(?=^## )", r"\1\n", text, flags=re.M | re.S))
        must_refuse("CHANGELOG.md", lambda text: text.replace("## 999", "## Unreleased\n\n- x\n\n## 999"))
        must_refuse("README.md", lambda text: text.replace("download/v999.0.0", "download/v999.0.1"))
        must_refuse("README.md", lambda text: text.replace(install_part(root), "Build it:\n"))
        os.remove(root / "docs/openapi/trading-api-999.0.0.json")
        if not list(faults(root)):
            sys.exit("versions.py: its own test failed: a missing document was overlooked")
        published = notes(root, "999.0.0")
        if re.search(r"\]\((?!https?:|#)", published) or len(published) < 10:
            sys.exit("versions.py: its own test failed: the notes have links that lead nowhere")
    return planted + 1


def main(command="version", *arguments):
    if command == "version" and not arguments:
        print(version_in(ROOT))
    elif command == "check" and len(arguments) <= 1:
        check(ROOT, *arguments)
        print(f"versions: {len(list(places(ROOT)))} places have {version_in(ROOT)}")
    elif command == "notes" and len(arguments) <= 1:
        print(notes(ROOT, *arguments or [version_in(ROOT)]))
    elif command == "prepare" and len(arguments) == 2:
        prepare(ROOT, *arguments, datetime.datetime.now(datetime.timezone.utc), print_document)
    elif command == "test" and not arguments:
        print(f"versions: {test()} planted faults were found")
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
