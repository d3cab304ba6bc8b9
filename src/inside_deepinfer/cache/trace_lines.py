"""Lines of a plain or gzip file, within limits that keep memory bounded; other kinds of file are refused by name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from inside_deepinfer.facts import UserError

MAX_LINE = 16 * 2**20
MAX_EXPANSION = 200  # times; JSON lines of ids expand 3 to 20 times
_FREE_EXPANSION = 64 * 2**20  # bytes that may always come out; an eighth of the limit where there is one
_BLOCK = 4 * 2**20
_MANY_LINES, _SHORTEST = 10_000, 4  # that many lines of fewer bytes on average hold no requests
_KNOWN = ((b"PK\x03\x04", "a zip archive"), (b"\x89PNG", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"%PDF", "a PDF"),
          (b"PAR1", "a Parquet file"), (b"\x28\xb5\x2f\xfd", "a zstd archive"), (b"BZh", "a bzip2 archive"),
          (b"\xfd7zXZ", "an xz archive"), (b"\x7fELF", "a program"), (b"<!DOCTYPE", "a web page"), (b"<html", "a web page"))


class NotATrace(UserError):
    """The file is something else, or too damaged to answer from."""


class Lines:
    """Blocks of whole lines of a file, decompressed, within the limits."""

    def __init__(self, source: Path | str | BinaryIO, name: str, max_bytes: int | None,
                 progress: Callable[[int, int], None] | None):
        self.name, self._source, self._max_bytes, self._progress = name, source, max_bytes, progress

    def __iter__(self) -> Iterator[list[bytes]]:
        if isinstance(self._source, (str, Path)):
            path = Path(self._source)
            try:
                size = path.stat().st_size
                with path.open("rb") as raw:
                    yield from self._read(raw, size)
            except OSError as error:
                raise NotATrace(f"{self.name} cannot be read: {error.strerror or error}") from None
        else:
            yield from self._read(self._source, 0)

    def _read(self, raw: BinaryIO, size: int) -> Iterator[list[bytes]]:
        counted = _Counted(raw)
        start = counted.peek(16)
        stream: Any = gzip.GzipFile(fileobj=counted, mode="rb") if start[:2] == b"\x1f\x8b" else counted
        packed, total, rest, first = stream is not counted, 0, b"", True
        free = _FREE_EXPANSION if self._max_bytes is None else min(_FREE_EXPANSION, self._max_bytes // 8)
        while True:
            try:
                block = stream.read(_BLOCK)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise NotATrace(f"{self.name}: the compressed data are damaged after {total:,} bytes of text ({error})") from None
            total += len(block)
            if packed and total > free + MAX_EXPANSION * counted.count:
                raise NotATrace(f"{self.name} expands more than {MAX_EXPANSION} times: no trace does, so reading stopped")
            if self._max_bytes is not None and total > self._max_bytes:
                raise NotATrace(f"{self.name} is larger than the {self._max_bytes:,} bytes that are allowed here")
            if first:
                self._refuse_other_files(block)
                first = False
            if self._progress:
                self._progress(counted.count, size)
            if not block:
                break
            count = block.count(b"\n")
            if count > _MANY_LINES and len(block) < _SHORTEST * count:
                raise NotATrace(f"{self.name} consists of nearly empty lines: a trace has one request per line")
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE:
                raise NotATrace(f"{self.name} has a line of more than {MAX_LINE:,} bytes: a trace has one request per line")
            yield lines
        if rest:
            yield [rest]

    def _refuse_other_files(self, block: bytes) -> None:
        if not block.strip():
            raise NotATrace(f"{self.name} is empty: a trace has one request per line")
        for magic, what in _KNOWN:
            if block.lstrip()[:len(magic)].lower() == magic.lower():
                raise NotATrace(f"{self.name} is {what}, not a trace (JSON lines or CSV, plain or gzip)")
        if b"\0" in block[:4096]:
            raise NotATrace(f"{self.name} is no text, so it is no trace (JSON lines or CSV, plain or gzip)")


class _Counted:
    """A binary file that knows how many bytes were taken from it, and lets us look at the first ones."""

    def __init__(self, raw: BinaryIO):
        self.raw, self.count, self._ahead = raw, 0, b""

    def peek(self, size: int) -> bytes:
        self._ahead = self.raw.read(size)
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        taken, self._ahead = self._ahead[:size] if size >= 0 else self._ahead, self._ahead[size:] if size >= 0 else b""
        if size < 0 or len(taken) < size:
            taken += self.raw.read(size - len(taken) if size >= 0 else -1)
        self.count += len(taken)
        return taken
