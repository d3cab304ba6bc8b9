"""A plotly figure as HTML: one JSON island, its sentence, its data table, its slider; the page's script draws it."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from docutils import nodes

from inside_deepinfer.facts.units import digits

MIME = "application/vnd.plotly.v1+json"
DEFAULT_HEIGHT = 380
SENTENCE = 30  # characters from which a cell needs room for its text


class PlotlyRenderer:
    """myst-nb plugin (entry point ``myst_nb.mime_renderers``): takes figures, leaves every other output alone."""

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        if data.mime_type != MIME or inline:
            return None
        figure = data.content if isinstance(data.content, dict) else json.loads(data.content)
        taken = renderer.renderer.document.settings.env.temp_data.setdefault("inside_figures", set())
        try:
            return [nodes.raw(text=figure_html(figure, taken), format="html")]
        except ValueError as error:
            renderer.logger.warning(f"figure: {error}", subtype="figure", line=data.line)
            return []


def figure_html(figure: dict[str, Any], taken: set[str]) -> str:
    """The figure's HTML.

    Args:
        figure: plotly JSON; ``layout.meta`` carries name, alt, table and sources, maybe caption.
        taken: ids already used on the page; the new one is added.
    """
    layout = dict(figure.get("layout", {}))
    meta = dict(layout.get("meta") or {})
    missing = [key for key in ("name", "alt", "table") if not meta.get(key)]
    if missing:
        raise ValueError(f"layout.meta lacks {', '.join(missing)}: finish it with inside_deepinfer.figures.figure.finish")
    name = _free_id(meta["name"], taken)
    table = meta.pop("table")
    slider, steps = _slider(layout, name)
    layout.pop("template", None)
    for gone in ("sliders", "updatemenus"):
        layout.pop(gone, None)
    layout["meta"] = meta
    island = {"data": figure.get("data", []), "layout": layout}
    if slider:
        island |= {"frames": figure.get("frames", []), "steps": steps}
    caption = meta.get("caption", "")
    sentence = f'<span id="{name}-alt" class="figure-alt" aria-live="polite">{escape(meta["alt"])}</span>'
    height = int(layout.get("height") or DEFAULT_HEIGHT)
    return (
        f'<figure class="figure-live" id="{name}" data-name="{escape(meta["name"])}">\n'
        f'<div class="figure-plot" role="img" aria-labelledby="{name}-alt" style="min-height:{height}px">'
        "<noscript>This figure is drawn by a script; its numbers are in the table below.</noscript></div>\n"
        f"{slider}"
        f'<figcaption>{f"<strong>{escape(caption)}</strong> " if caption else ""}{sentence}</figcaption>\n'
        f'<details class="figure-data"><summary>Data behind this figure</summary>{_table(table, name)}'
        f'<p class="figure-tools"><button type="button" class="get-csv">Download CSV</button> '
        f'<button type="button" class="get-png">Download PNG</button></p></details>\n'
        f'<script type="{MIME}">{_island(island)}</script>\n</figure>\n')


def _free_id(name: str, taken: set[str]) -> str:
    base = "fig-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower()
    found, count = base, 1
    while found in taken:
        count += 1
        found = f"{base}-{count}"
    taken.add(found)
    return found


def _slider(layout: dict[str, Any], name: str) -> tuple[str, list[dict[str, str]]]:
    """A labelled native slider from ``layout.sliders``, hidden until the script can serve it, and its steps."""
    sliders = layout.get("sliders") or []
    if not sliders:
        return "", []
    steps = [{"label": str(step["label"]), "frame": str(step["args"][0][0])} for step in sliders[0]["steps"]]
    value = sliders[0].get("currentvalue") or {}
    prefix, suffix = str(value.get("prefix") or "").strip(), str(value.get("suffix") or "")
    label = prefix.rstrip(":").strip()
    if not label:
        raise ValueError(f"{name}: the slider has no name (currentvalue.prefix)")
    active = int(sliders[0].get("active") or 0)
    shown = steps[active]["label"] + suffix
    html = (
        f'<div class="figure-slider" hidden><label for="{name}-slider">{escape(label)}</label>'
        f'<input type="range" id="{name}-slider" min="0" max="{len(steps) - 1}" step="1" value="{active}" '
        f'data-suffix="{escape(suffix)}" aria-valuetext="{escape(shown)}">'
        f'<output for="{name}-slider">{escape(shown)}</output></div>\n')
    return html, steps


def _table(table: dict[str, Any], name: str) -> str:
    heads = "".join(f'<th scope="col">{escape(str(column))}</th>' for column in table["columns"])
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table["rows"])
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="Data of {name}"><table><thead><tr>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>")


def _cell(cell: Any) -> str:
    if cell is None:
        return "<td></td>"
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return f"<td{' class=text' * (len(str(cell)) > SENTENCE)}>{escape(str(cell))}</td>"
    text = digits(float(cell), 6)
    exact = "" if float(text.replace(",", "")) == cell else f' data-v="{cell!r}"'  # only where the text says less
    return f'<td class="n"{exact}>{text}</td>'


def _island(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
