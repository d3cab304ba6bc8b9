"""A reader's file and the server: limits, refusals, nothing in the output, nobody else waits, nothing stays behind."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import time
from typing import Any
from urllib.parse import urlsplit

from traces import HAND
from visitor import Visitor, health, running

FILE = {"Content-Type": "application/octet-stream"}


def post(address: str, body: Any, path: str = "/explore/kv-store/file", method: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
    link = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    link.request(method, path, body, FILE | headers)
    answer = link.getresponse()
    found = answer.status, json.loads(answer.read())
    link.close()
    return found


def big_trace(requests: int) -> bytes:
    return "".join(f'{{"timestamp": {n}, "input_length": 2560, "output_length": 1, "hash_ids": {list(range(20 * n, 20 * n + 20))}}}\n'
                   for n in range(requests)).encode()


def test_what_the_server_takes_and_refuses() -> None:
    with running() as (address, _):
        status, found = post(address, HAND.read_bytes())
        assert status == 200 and found["blocks"][0]["counts"][3]["text"] == "47.27 %" and len(found["figures"]) == 2
        assert all(figure["table"]["rows"] and figure["alt"] for figure in found["figures"])
        status, found = post(address, b"")
        assert status == 200 and "is empty" in found["problem"]
        status, found = post(address, b"x" * (2**24 + 1))
        assert status == 413 and "at most 16 MiB are taken" in found["problem"]
        parts = (b"y" * 2**20 for _ in range(18))
        status, found = post(address, parts)  # in chunks, without a length
        assert status == 413 and "too large" in found["problem"]
        status, found = post(address, HAND.read_bytes(), **{"Content-Type": "text/plain"})
        assert status == 415 and "octet-stream" in found["problem"]
        for path in ("/explore/fleet/file", "/explore/nothing/file"):
            assert post(address, b"x", path)[0] == 404
        assert post(address, None, method="GET")[0] == 404
        status, found = post(address, HAND.read_bytes(), "/explore/kv-store/file?m=deepseek-v3&rd=2")
        assert "70,272 B" in json.dumps(found["blocks"]) and ["2 d", "47.27 %", "45.55 %", "37.81 %"] in found["blocks"][2]["rows"]


def test_nothing_of_a_file_reaches_the_servers_output() -> None:
    with running() as (address, child):
        bad_time = b'{"timestamp": "correcthorse", "input_length": 1, "hash_ids": [1]}\n'
        for body in (b"correcthorse\n", b'{"correcthorse": 1}\n' * 9, bad_time):
            status, found = post(address, body)
            assert status == 200 and found["problem"] and "correcthorse" not in found["problem"]
    assert "correcthorse" not in child.stdout.read() + child.stderr.read()


def readers(child: subprocess.Popen[str]) -> int:
    done = subprocess.run(["ps", "--ppid", str(child.pid), "-o", "args="], capture_output=True, text=True)
    return done.stdout.count("file_reader")


def test_other_visitors_do_not_wait_and_a_visitor_who_leaves_ends_the_reading() -> None:
    body = big_trace(60_000)

    async def both(address: str) -> list[str]:
        order: list[str] = []
        async with Visitor(address, "fleet") as short:
            await short.ask(changes={"hit_rate": "0.4"})
            job = asyncio.create_task(asyncio.to_thread(post, address, body))
            job.add_done_callback(lambda _: order.append("file"))
            await asyncio.sleep(0.5)
            await short.ask(changes={"hit_rate": "0.5"})
            order.append("slider")
            status, found = await job
            assert status == 200 and "60,000" in json.dumps(found["blocks"][0]), found.get("problem")
        return order

    with running() as (address, child):
        assert asyncio.run(both(address)) == ["slider", "file"]
        link = http.client.HTTPConnection(urlsplit(address).netloc)
        link.request("POST", "/explore/kv-store/file", body, FILE)
        deadline = time.monotonic() + 30
        while not readers(child):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        link.close()
        while readers(child):
            assert time.monotonic() < deadline, "the reading goes on without its visitor"
            time.sleep(0.1)
        assert health(address)["status"] == "ok"


def test_too_many_files_at_once_are_told_so() -> None:
    with running() as (address, _):
        links = []
        for _ in range(4):  # four that never finish sending
            link = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
            link.putrequest("POST", "/explore/kv-store/file")
            for name, value in (FILE | {"Content-Length": "1000"}).items():
                link.putheader(name, value)
            link.endheaders(b"{")
            links.append(link)
        time.sleep(0.5)
        status, found = post(address, HAND.read_bytes())
        assert status == 503 and "try again" in found["problem"]
        for link in links:
            link.close()
        time.sleep(0.5)
        assert post(address, HAND.read_bytes())[0] == 200
