"""Scripts, styles and fonts that the pages need, copied beside them: the book asks no other host for anything.

They lie in ``_inside`` and not in ``_static``, because jupyter-book loads every script below ``_static`` on every page.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import plotly

from inside_deepinfer.figures.theme import KIND_MARK, PALETTE, VERDICT_MARK, template

FOLDER = "_inside"
STATIC = Path(__file__).parent / "static"
MATHJAX = "tex-svg.js"  # draws glyphs as paths: one file, no fonts, the same from a folder and from a server

# plotly's marker names as shapes of a 12 x 12 square; an open mark is an outline
SHAPES = {
    "square": "M2 2h8v8h-8z", "diamond": "M6 .5 11.5 6 6 11.5.5 6z", "pentagon": "M6 .7 11.5 4.8 9.4 11.2H2.6L.5 4.8z",
    "circle": "M6 1.2a4.8 4.8 0 1 0 .01 0z", "triangle-up": "M6 1 11.5 11H.5z",
    "star": "M6 .3 7.7 4.2 12 4.6 8.7 7.4 9.7 11.6 6 9.4 2.3 11.6 3.3 7.4 0 4.6 4.3 4.2z",
    "x": "M2.2.6 6 4.4 9.8.6l1.6 1.6L7.6 6l3.8 3.8-1.6 1.6L6 7.6l-3.8 3.8L.6 9.8 4.4 6 .6 2.2z", "line-ew": "M.5 4.8h11v2.4H.5z",
}


def copy(output: Path) -> None:
    """Write everything into ``output/_inside``; files that are already there unchanged are left alone."""
    target = output / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for source in STATIC.iterdir():
        _put(source, target / source.name)
    _put(Path(plotly.__file__).parent / "package_data" / "plotly.min.js", target / "plotly.min.js")
    _put(_mathjax(), target / MATHJAX)
    _write(target / "theme.css", theme_css())
    _write(target / "theme.js", f"window.insideTheme = {json.dumps(plot_theme(), separators=(',', ':'))};\n")


def plot_theme() -> dict[str, object]:
    """What the page's script needs to draw and recolour figures: a template and a colour table for each theme."""
    return {
        "light": template(dark=False).to_plotly_json(), "dark": template(dark=True).to_plotly_json(),
        "swap": {light.lower(): dark for light, dark in PALETTE.values()},
    }


def theme_css() -> str:
    """Colours of the roles, and the marks of kinds and verdicts, as style rules: the same as in the figures."""
    light = "".join(f"--{role}:{pair[0]};" for role, pair in PALETTE.items())
    dark = "".join(f"--{role}:{pair[1]};" for role, pair in PALETTE.items())
    rules = [f"html{{{light}}}", f'html[data-theme="dark"]{{{dark}}}', f"@media print{{html[data-theme]{{{light}}}}}"]
    for prefix, marks in (("kind", KIND_MARK), ("verdict", VERDICT_MARK)):
        rules += [f".{prefix}-{name}{{--mark:{_picture(shape)};--mark-colour:var(--{role});}}"
                  for name, (shape, role) in marks.items()]
    return "\n".join(rules) + "\n"


def _picture(shape: str) -> str:
    path = SHAPES[shape.removesuffix("-open")]
    fill = "fill='none' stroke='%23000' stroke-width='1.8'" if shape.endswith("-open") else "fill='%23000'"
    return (f"url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='-1 -1 14 14'%3E"
            f"%3Cpath d='{path}' {fill}/%3E%3C/svg%3E\")")


def _mathjax() -> Path:
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("the package sphinx-mathjax-offline is not installed")
    return Path(list(found.submodule_search_locations)[0]) / "static" / "mathjax" / MATHJAX


def _put(source: Path, target: Path) -> None:
    same = target.is_file() and target.stat().st_size == source.stat().st_size and target.read_bytes() == source.read_bytes()
    if not same:
        shutil.copyfile(source, target)


def _write(target: Path, text: str) -> None:
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
