"""Book and dashboard from one server: addresses, headers, health, errors, and how it starts and ends."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from visitor import SERVER, Visitor, health, running

from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.facts import UserError
from inside_deepinfer.publish import server


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of three files; the real one has its own tests."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "index.html").write_text("<!doctype html><title>Front</title><p>front page", encoding="utf-8")
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "one-day.html").write_text("<!doctype html><p>" + "one day " * 200, encoding="utf-8")
    (folder / "_inside").mkdir()
    (folder / "_inside" / "plotly.min.js").write_text("// plotly " + "x" * 300_000, encoding="utf-8")
    (folder.parent / "secret.txt").write_text("secret", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(book: Path) -> Iterator[str]:
    with running(book) as (found, _):
        yield found


def get(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of one request, taken as they are: no redirect followed, nothing unpacked."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_the_front_page_is_the_book_and_every_dashboard_page_is_beside_it(address: str) -> None:
    status, headers, body = get(address, "/")
    assert status == 200 and b"front page" in body and headers["Cache-Control"] == "no-cache"
    assert get(address, "/notebooks/one-day.html")[0] == 200
    for slug, page in all_pages().items():
        status, headers, body = get(address, f"/explore/{slug}")
        assert status == 200 and page.question in body.decode()
        assert headers["Cache-Control"] == "no-store"
        assert 'src="../_inside/plotly.min.js"' in body.decode()
    index = get(address, "/explore")[2].decode()
    assert all(f'href="/explore/{slug}"' in index for slug in all_pages())


def test_a_slash_at_the_end_and_a_monstrous_query_are_led_to_an_address_that_works(address: str) -> None:
    status, headers, _ = get(address, "/explore/fleet/?h=0.9")
    assert (status, headers["Location"]) == (302, "/explore/fleet?h=0.9")
    status, headers, _ = get(address, "/explore/fleet?x=" + "a" * 30_000)
    assert status == 302 and len(headers["Location"]) < 60
    body = get(address, headers["Location"])[2].decode()
    assert "too long" in body


def test_large_files_travel_compressed_and_are_kept_by_browsers(address: str) -> None:
    status, headers, body = get(address, "/_inside/plotly.min.js", Accept_Encoding="gzip")
    assert status == 200 and headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in headers["Vary"]
    assert len(gzip.decompress(body)) > 300_000 > 30 * len(body)
    assert headers["Cache-Control"] == "public, max-age=86400"
    status, _, body = get(address, "/_inside/plotly.min.js", Accept_Encoding="gzip", If_None_Match=headers["Etag"])
    assert (status, body) == (304, b"")
    status, headers, body = get(address, "/_inside/plotly.min.js")
    assert headers.get("Content-Encoding") is None and len(body) > 300_000
    status, headers, body = get(address, "/_inside/plotly.min.js", Range="bytes=0-8", Accept_Encoding="gzip")
    assert (status, body) == (206, b"// plotly")


@pytest.mark.parametrize("path", ["/static/js/bokeh.min.js", "/static/extensions/panel/panel.min.js", "/explore/assets/plotly.min.js"])
def test_libraries_come_from_here(address: str, path: str) -> None:
    status, headers, body = get(address, path, Accept_Encoding="gzip")
    assert status == 200 and headers["Content-Encoding"] == "gzip" and len(body) > 50_000
    assert "javascript" in headers["Content-Type"]


def test_our_own_scripts_are_checked_again_unless_their_name_says_their_content(address: str) -> None:
    base = "/components/inside_deepinfer.explorer.shell/Assets/_js/static/main.js"
    assert get(address, base)[1]["Cache-Control"] == "no-cache"
    assert "max-age=315360000" in get(address, base + "?v=abc")[1]["Cache-Control"]


@pytest.mark.parametrize("path", [
    "/nothing.html", "/explore/nothing", "/explore/fleet/nothing", "/notebooks/", "/static/nothing.js", "/static/extensions/no/x.js",
    "/components/os/path/_js/x.js", "/components/inside_deepinfer.explorer.shell/Assets/_js/static/page.html", "/%3Cscript%3Ealert(1)",
    "/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/notebooks/..%2f..%2fsecret.txt", "//etc/passwd"])
def test_what_is_not_there_is_our_own_page_and_nothing_above_the_book_is_read(address: str, path: str) -> None:
    status, headers, body = get(address, path)
    text = body.decode()
    assert status in (403, 404) and b"secret" not in body.replace(b"/secret.txt", b"").replace(b"fsecret.txt", b"")
    assert "text/html" in headers["Content-Type"] and "<main>" in text and "<script" not in text
    assert "Traceback" not in text and "/root" not in text and len(text) < 3000


@pytest.mark.parametrize("path", ["/", "/explore/fleet", "/explore", "/nothing", "/health"])
def test_every_answer_says_that_nothing_comes_from_elsewhere(address: str, path: str) -> None:
    headers = get(address, path)[1]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "same-origin"
    if path != "/health":
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "http" not in headers["Content-Security-Policy"]


def test_health_counts_the_visitors(address: str) -> None:
    async def visit() -> dict[str, object]:
        async with Visitor(address, "fleet"), Visitor(address, "revenue"):
            return await asyncio.to_thread(health, address)

    report = asyncio.run(visit())
    assert report["status"] == "ok" and report["connections"] == 2
    assert 30 < report["memory_mb"] < 1000  # type: ignore[operator]
    assert report["pages"] == list(all_pages())


def test_another_site_may_not_open_the_websocket(address: str) -> None:
    status, _, _ = get(address, "/explore/fleet/ws", Upgrade="websocket", Connection="Upgrade", Origin="http://evil.example",
                       Sec_WebSocket_Version="13", Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==")
    assert status == 403


def test_only_reading_is_possible(address: str) -> None:
    assert get(address, "/", "POST")[0] == 405
    assert get(address, "/health", "DELETE")[0] == 405
    status, _, body = get(address, "/", "HEAD")
    assert (status, body) == (200, b"")


def test_a_session_opens_on_another_process_than_the_page_came_from() -> None:
    with running(processes=2) as (address, child):
        async def visit(number: int) -> str:
            async with Visitor(address, "fleet", f"h=0.{number + 50}") as visitor:
                assert "http" not in json.dumps(visitor.document)
                return (await visitor.ask(changes={"pd_ratio": "2"}))["view"]["query"]

        async def visits() -> list[str]:
            return await asyncio.gather(*(visit(number) for number in range(8)))

        assert asyncio.run(visits()) == [f"h=0.{number + 50}".rstrip("0") + "&pd=2" for number in range(8)]
        processes = [int(number) for number in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
        assert len(processes) == 2 and health(address)["process"] in processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("processes", [1, 2])
def test_it_stops_cleanly_and_gives_the_port_back(number: signal.Signals, processes: int) -> None:
    with running(processes=processes) as (address, child):
        async def stop() -> None:
            async with Visitor(address, "fleet"):
                child.send_signal(number)
                await asyncio.to_thread(child.wait, 10)

        asyncio.run(stop())
        assert child.returncode == 0
        assert child.stderr is not None and "Traceback" not in child.stderr.read()
        for free in server.bind("127.0.0.1", urlsplit(address).port or 0):
            free.close()


def test_when_the_parent_dies_the_children_do_not_stay() -> None:
    with running(processes=2) as (address, child):
        process = health(address)["process"]
        child.kill()
        child.wait()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        raise AssertionError("a child outlives its parent")


def test_a_port_in_use_is_one_clear_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} is in use.*--port"):
            server.bind("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port", "words"), [
    ("127.0.0.1", 70_000, "70000"), ("no.such.host.invalid", 0, "no address of this machine"), ("203.0.113.7", 0, "203.0.113.7")])
def test_an_address_that_cannot_be_had_is_one_clear_sentence(host: str, port: int, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        server.bind(host, port)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_book_is_refused_before_the_port_is_taken(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="index.html is missing"):
        server.serve(0, book=tmp_path)


def test_without_a_book_the_front_page_leads_to_the_dashboard() -> None:
    with running() as (address, _):
        status, headers, _ = get(address, "/")
        assert (status, headers["Location"]) == (302, "/explore")
        assert 'data-book=""' in get(address, "/explore/fleet")[2].decode()


def test_the_address_is_told_at_once_also_to_a_pipe() -> None:
    child = subprocess.Popen([sys.executable, "-c", SERVER, "0", "", "1"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert "http://localhost:" in child.stdout.readline()
    finally:
        child.terminate()
        child.wait(15)


def test_panel_serves_a_page_alone_from_its_thin_file() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = Path(__file__).parents[1] / "dashboards" / "cache-prices.py"
    child = subprocess.Popen([sys.executable, "-m", "panel", "serve", str(file), "--port", str(port)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                status, _, body = get(address, "/cache-prices?h=0.9")
                break
            except OSError:
                assert child.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
        page = body.decode()
        assert status == 200 and all_pages()["cache-prices"].question in page and "https://" not in page.split('id="opening"')[0]
        assert get(address, "/components/inside_deepinfer.explorer.shell/Assets/_js/static/main.js")[0] == 200
        plotly = page.split('id="plotly" src="')[1].split('"')[0]
        assert get(address, "/" + plotly.lstrip("./"))[0] == 200
    finally:
        child.terminate()
        child.wait(15)


def test_there_is_one_thin_file_for_every_page() -> None:
    folder = Path(__file__).parents[1] / "dashboards"
    assert {path.stem for path in folder.glob("*.py")} == set(all_pages())
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 5 for path in folder.glob("*.py"))
