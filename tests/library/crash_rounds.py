"""Ingests into one folder in a fork and kills it at a random moment, again and again; prints one line of JSON for each round.

A round's line says what the fork had reported as finished, and what `engine.check` and the library say afterwards.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from chunk_samples import make_sample
from library_samples import make_text, open_library

from engine.check import check
from engine.chunks.store import ChunkStore
from engine.library import uploads
from engine.library.limits import LibraryLimits
from engine.library.parse.base import ParseLimits
from engine.library.parse.child import parse_here
from engine.library.tools import KvFiles

ME, MODEL = "visitor-1", "tiny"
LIMITS = LibraryLimits(owner_documents=10**6, owner_bytes=10**9, owner_hours=10**6, chunk_tokens=40)


def parse_in_place(kind, data, limits, cancelled):
    """Parses without a process, which would leave too few moments for the rest."""
    return parse_here(kind, data, ParseLimits(100, 1000, 10**7, 10**7, 10, 2**30))


def ingest(folder: Path, seed: int, told: int) -> None:
    """Uploads, computes KV (here made up), and deletes, reporting what is finished; never ends by itself."""
    torch.set_num_threads(1)
    library = open_library(folder / "library", LIMITS, kv_model=lambda: MODEL, kv_files=KvFiles(folder / "chunks"))
    store = ChunkStore(folder / "chunks", 2**24)
    os.write(told, b"ready\n")
    draw = random.Random(seed)
    while True:
        seed += 1
        document = library.add(ME, f"Library {seed % 3}", "note.txt", make_text(seed, draw.choice([10, 60])).encode())
        os.write(told, f"+{document.document_id}\n".encode())
        for job in library.kv.wanted(MODEL, 2):
            sample = make_sample(draw.randrange(40), num_tokens=32)
            stored = store.put(*sample)
            library.kv.set(MODEL, job.chunk.chunk_id, stored.hash, stored.size_bytes, 32)
            os.write(told, f"k{stored.hash}\n".encode())
        if draw.random() < 0.3:
            os.write(told, f"?{document.document_id}\n".encode())
            library.remove(ME, document.document_id)


def run_rounds(folder: Path, num_rounds: int, seed: int) -> None:
    """Kills the ingest at `num_rounds` moments."""
    uploads.parse_apart = parse_in_place
    fork, draw = multiprocessing.get_context("fork"), random.Random(seed)
    for i in range(num_rounds):
        source, target = os.pipe()
        process = fork.Process(target=ingest, args=(folder, 1000 * i, target))
        process.start()
        os.close(target)
        with os.fdopen(source, "rb") as pipe:
            # Every eighth one dies while it opens the library, the first of them while it makes it; the others at some step.
            told = [pipe.readline() for _ in range(i % 8)]
            time.sleep(draw.uniform(0.0, 0.02))
            os.kill(process.pid, signal.SIGKILL)
            told += pipe.read().splitlines(keepends=True)
        process.join()
        whole = [line.decode().strip() for line in told if line.endswith(b"\n")]
        report = check(folder)
        present, kv = state(folder)
        added = [line[1:] for line in whole if line[0] == "+"]
        lost = [document for document in added if document not in present and f"?{document}" not in whole]
        kv_lost = [kv_hash for kv_hash in kv if not (folder / "chunks" / f"{kv_hash}.safetensors").exists()]
        outcome = {"added": len(added), "lost": lost, "kv": len(kv), "kv_lost": kv_lost, "problems": report.problems}
        print(json.dumps({"exit": process.exitcode, **outcome}))


def state(folder: Path) -> tuple[set[str], set[str]]:
    """Returns the documents that are there, and the hashes of the KV that the library says is stored."""
    library = open_library(folder / "library", LIMITS, kv_model=lambda: MODEL)
    documents = {info.document_id for shelf in library.libraries(ME) for info in library.documents(ME, shelf.name)}
    with library._database.reading() as db:
        kv = {row["hash"] for row in db.execute("SELECT hash FROM kv")}
    library.close()
    return documents, kv


if __name__ == "__main__":
    run_rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
