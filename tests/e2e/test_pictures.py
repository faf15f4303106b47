"""The pictures of the documentation show the current output of the program."""
import importlib.machinery
import importlib.util

import pytest

from harness import BUILD, REPO

HERE = REPO / "docs/pictures"


def load():
    loader = importlib.machinery.SourceFileLoader("pictures", str(HERE / "make"))
    spec = importlib.util.spec_from_loader("pictures", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


pictures = load()


@pytest.mark.parametrize("name", pictures.SCENES)
def test_a_picture_is_up_to_date(name):
    now = pictures.play(name, BUILD / "skillsandbox")
    assert now == (HERE / f"{name}.svg").read_text(encoding="utf-8"), \
        "make it anew with docs/pictures/make, and look at it"


def test_every_picture_is_used():
    pages = "".join(p.read_text(encoding="utf-8") for p in (REPO / "docs").glob("*.md"))
    assert {p.stem for p in HERE.glob("*.svg")} == set(pictures.SCENES)
    for name in pictures.SCENES:
        assert f"pictures/{name}.svg" in pages
