"""The documents are not longer than their limits, and the paths in them exist."""
import re

import pytest

from harness import REPO

PAGES = sorted(p.relative_to(REPO) for p in
               [*REPO.glob("*.md"), *REPO.glob("docs/**/*.md"), *REPO.glob("examples/**/*.md"),
                *REPO.glob("integrations/**/*.md"), *REPO.glob("python/*.md"),
                *REPO.glob("tests/*.md")])
PLACEHOLDER = re.compile("NAME|NNN")  # src/cli/cmd_NAME.c


@pytest.mark.parametrize("page, most", [("README.md", 150), ("docs/ARCHITECTURE.md", 250)])
def test_page_is_short(page, most):
    assert len((REPO / page).read_text().splitlines()) <= most


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_paths_and_links_lead_somewhere(page):
    text = (REPO / page).read_text()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    named = re.findall(r"`((?:src|tests|tools|docs|schema|data|include|examples|scripts|man|python)"
                       r"/[\w./*-]+)", prose)
    lost = [n for n in named if not PLACEHOLDER.search(n) and not list(REPO.glob(n.rstrip("/.")))]
    links = re.findall(r"\]\(([^)#:]+)\)", prose)
    lost += [n for n in links if not (REPO / page).parent.joinpath(n).exists()]
    assert lost == []


def test_every_folder_of_the_source_is_in_the_map():
    page = (REPO / "docs/ARCHITECTURE.md").read_text()
    folders = sorted(p.name for p in (REPO / "src").iterdir() if p.is_dir())
    rows = re.findall(r"^\| `src/(\w+)` \|", page, re.M)
    assert sorted(rows) == folders
    order = re.findall(r"subdir\('(\w+)'\)", (REPO / "src/meson.build").read_text())
    assert rows == order
