"""Builds the pages in a process of its own: ``python -m inside_deepinfer.publish.worker WORK JSON``.

Tells its parent what it does as one JSON object per line on standard output; everything else goes to standard error.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from inside_deepinfer.facts import UserError

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def main(work: Path, options: dict[str, Any]) -> int:
    """Run the notebooks, then Sphinx; returns 0 where nothing went wrong."""
    tell = _speaker()
    try:
        return _build(work, options, tell)
    except OSError as error:
        tell(event="problem", text=_disk(error))
    except UserError as error:
        tell(event="problem", text=str(error))
    except sqlite3.Error as error:
        tell(event="problem", text=f"the cache of executed notebooks cannot be used: {error}")
    except Exception as error:  # the parent prints one line and names the log
        cause = getattr(error, "orig_exc", None)  # Sphinx wraps what an event handler raises
        tell(event="problem", text=_disk(cause) if isinstance(cause, OSError) else f"{type(error).__name__}: {error}")
        with suppress(OSError):  # the log may lie on the disk that is full
            traceback.print_exc()
    return 1


def _disk(error: OSError) -> str:
    where = f" ({error.filename2 or error.filename})" if error.filename else ""
    return (error.strerror or str(error)).lower() + where


def _speaker() -> Any:
    """Keep the real standard output for events; whatever else is printed goes to standard error."""
    channel = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def tell(**event: Any) -> None:
        channel.write(json.dumps(event) + "\n")

    return tell


def _build(work: Path, options: dict[str, Any], tell: Any) -> int:
    tell(event="phase", name="starting")
    from jupyter_book.config import get_final_config
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils
    from sphinx_external_toc.parsing import parse_toc_yaml

    from inside_deepinfer.publish.extension import cache_folder
    from inside_deepinfer.publish.run_notebooks import find, run_all

    book = Path(options["book"])
    config, _ = get_final_config(user_yaml=book / "_config.yml", sourcedir=book, raise_on_invalid=True,
                                 cli_config={"latex_individualpages": False})
    documents = [name.removesuffix(".md") for name in parse_toc_yaml(book / "_toc.yml").keys()]  # noqa: SIM118
    notebooks = find(book, documents)
    tell(event="phase", name="running", total=len(notebooks))
    failures = run_all(notebooks, cache_folder(), options["workers"], int(config.get("nb_execution_timeout") or 60),
                       lambda what, name: tell(event="notebook", what=what, name=name))
    for failure in failures:
        tell(event="failure", notebook=failure.notebook, line=failure.line, error=ANSI.sub("", failure.error))
    skipped = [f"{failure.notebook}.md" for failure in failures]  # not a second time; the build has failed already
    config["nb_execution_excludepatterns"] = [*(config.get("nb_execution_excludepatterns") or []), *skipped]

    with patch_docutils(str(book)), docutils_namespace():
        app = Sphinx(srcdir=str(book), confdir=None, outdir=str(work / "html"), doctreedir=str(work / "doctrees"),
                     buildername="html", confoverrides=config, status=sys.stderr, warning=_Warnings(tell, book),
                     freshenv=False, warningiserror=False, keep_going=True, parallel=1)
        _follow(app, tell)
        app.build()
        tell(event="phase", name="publishing")
        return 1 if failures or app.statuscode else 0


def _follow(app: Any, tell: Any) -> None:
    """Report each page as it is read and written."""
    app.connect("env-before-read-docs", lambda _app, _env, names: tell(event="phase", name="reading", total=len(names)))
    app.connect("doctree-read", lambda app, _doctree: tell(event="page", name=app.env.docname))
    app.connect("env-check-consistency", lambda _app, env: tell(event="phase", name="writing", total=len(env.found_docs)))
    app.connect("html-page-context", lambda _app, name, *_: tell(event="page", name=name))


class _Warnings:
    """The stream that Sphinx writes its warnings to: each becomes one event, with the path as seen from the checkout."""

    def __init__(self, tell: Any, book: Path):
        self.tell, self.book = tell, book
        self.encoding = "utf-8"

    def write(self, text: str) -> int:
        plain = ANSI.sub("", text).strip()
        if plain:
            here = str(self.book) + os.sep
            self.tell(event="warning", text=plain.replace(here + "notebooks" + os.sep, "notebooks" + os.sep)
                      .replace(here, "book" + os.sep))
        return len(text)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
