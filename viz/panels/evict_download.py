"""The cache run that a visitor takes away from the Evict tab. Knows nothing of Gradio."""

import re

from viz.panels.contract import ReplaysLike
from viz.panels.evict_board import Board
from viz.panels.run_download import write_download


def write_cache_run(replays: ReplaysLike, board: Board | None, policy: str | None) -> str | None:
    """Returns the path of the file of a policy's first seed, named by load, policy and capacity; None without a board."""
    if board is None:
        return None
    run = board.run(policy)
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", f"{run.workload}-{run.policy}-{run.capacity_blocks}-{run.seed}").strip("-")
    return write_download(f"fusescope-{plain[:100]}.cache.json.gz", replays.dump(run))
