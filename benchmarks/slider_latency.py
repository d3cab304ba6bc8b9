"""From a slider's key press to the redrawn figure, in a real browser with one visitor; prints median and spread."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from visitor import running

from inside_deepinfer.explorer.pages import all_pages

MOVES = 25
# from the input event to the frame after the figures in sight have been drawn again; a step of a fiftieth changes every input
MEASURE = """
turn => new Promise((done, failed) => {
  const slider = document.querySelector('input[type=range]'), root = document.documentElement
  const step = Math.ceil((slider.max - slider.min) / 50), before = root.dataset.drawn
  setTimeout(() => failed(new Error('not drawn again within 10 s')), 10000)
  const began = performance.now()
  const watch = new MutationObserver(() => {
    if (root.dataset.drawn === before) return
    watch.disconnect()
    requestAnimationFrame(() => done(performance.now() - began))
  })
  watch.observe(root, { attributeFilter: ['data-drawn'] })
  slider.value = Number(slider.value) + (turn % 2 ? -1 : 1) * step * (1 + Math.floor(turn / 2) % 9)
  slider.dispatchEvent(new Event('input', { bubbles: true }))
})
"""


def main() -> None:
    movable = [slug for slug, page in all_pages().items() if page.controls]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(movable)}; all where none is named")
    pages = parser.parse_args().pages
    if unknown := sorted(set(pages) - set(movable)):
        parser.error(f"no page with a slider is called {unknown[0]!r}; there are {', '.join(movable)}")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with running() as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for slug in pages or movable:
            page = browser.new_page()
            page.goto(f"{address}/explore/{slug}")
            page.wait_for_selector(".js-plotly-plot .main-svg")
            page.wait_for_timeout(1500)
            taken = []
            for turn in range(MOVES):
                taken.append(page.evaluate(MEASURE, turn))
                page.wait_for_timeout(150)
            print(f"{slug}: median {statistics.median(taken):.0f} ms, smallest {min(taken):.0f}, largest {max(taken):.0f} of {MOVES} moves")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
