"""From a slider's key press to the redrawn figure, in a real browser with one visitor; prints median and spread."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from visitor import running

MOVES = 25
MEASURE = """
() => new Promise(done => {
  const plot = document.querySelector('.js-plotly-plot'), slider = document.querySelector('input[type=range]')
  const began = performance.now()
  plot.once('plotly_afterplot', () => requestAnimationFrame(() => done(performance.now() - began)))
  slider.stepDown()
  slider.dispatchEvent(new Event('input', { bubbles: true }))
})
"""


def main() -> None:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with running() as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for slug in ("fleet", "cache-prices", "revenue", "hbm"):
            page = browser.new_page()
            page.goto(f"{address}/explore/{slug}")
            page.wait_for_selector(".js-plotly-plot .main-svg")
            page.wait_for_timeout(1500)
            taken = []
            for _ in range(MOVES):
                taken.append(page.evaluate(MEASURE))
                page.wait_for_timeout(150)
            print(f"{slug}: median {statistics.median(taken):.0f} ms, smallest {min(taken):.0f}, largest {max(taken):.0f} of {MOVES} moves")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
