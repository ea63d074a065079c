"""What the docs site has beyond docs/: pages from elsewhere in the tree, and the Python API.

A hook of MkDocs. Links are written for a reader of the repository; here each becomes a link of the
site, and one to a file that the site does not show becomes its text.
"""  # noqa: INP001 - beside a script

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import gpucost

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "docs/README.md": "index.md",
    "examples/README.md": "examples/index.md",
    "examples/hard/README.md": "examples/hard.md",
    "pricing/data/README.md": "reference/price-data.md",
}
_ORIGIN = {site: source for source, site in ELSEWHERE.items() if source != "docs/README.md"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    made = {
        **{site: (ROOT / source).read_text(encoding="utf-8") for site, source in _ORIGIN.items()},
        "reference/api.md": _api(),
        "examples/api.md": _programs(),
    }
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(
    markdown: str,
    page: Page,
    config: MkDocsConfig,  # noqa: ARG001 - MkDocs names it
    files: Files,
) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    origin = posixpath.dirname(_ORIGIN.get(here, f"docs/{here}"))

    def shown(link: re.Match[str]) -> str:
        words, (path, _, anchor) = link[1], link[2].partition("#")
        if not path:
            return link[0]
        target = posixpath.normpath(posixpath.join(origin, path))
        uri = ELSEWHERE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(uri) is None:
            if (ROOT / target).exists():
                return words  # a file of the repository that is not a page
            return link[0]  # MkDocs says that it leads nowhere
        relative = posixpath.relpath(uri, posixpath.dirname(here) or ".")
        return f"[{words}]({relative}{'#' if anchor else ''}{anchor})"

    parts = _FENCED.split(markdown)  # text and fenced blocks take turns
    return "".join(
        part if place % 2 else _LINK.sub(shown, part) for place, part in enumerate(parts)
    )


def _api() -> str:
    """Return the page of the public names, functions first."""
    names = [name for name in gpucost.__all__ if not name.startswith(("_", "load_ipython"))]
    functions = [name for name in names if name[0].islower()]
    values = [name for name in names if name[0].isupper()]
    text = [
        "# Python API",
        "",
        "What `import gpucost` offers. Programs that use it: [examples](../examples/api.md).",
        "",
    ]
    for name in (*functions, *values):
        text += [f"::: gpucost.{name}", ""]
    return "\n".join(text)


def _programs() -> str:
    """Return the page of the programs in examples/api."""
    text = ["# Programs", "", "In `examples/api`; each is run by the tests.", ""]
    for path in sorted((ROOT / "examples" / "api").glob("*.py")):
        text += [
            f"## {path.stem.replace('_', ' ').capitalize()}",
            "",
            f"```python\n{path.read_text(encoding='utf-8')}```",
            "",
        ]
    return "\n".join(text)
