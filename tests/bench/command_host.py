"""Runs commands as `python -m` does, each in a fork of a process that has imported the large libraries already.

Only libraries are imported before, nothing of this project, so that each command still imports and sets up all that is its own. Its
environment, output, signals and status are its own too. One job a line on stdin; the number of its process, then its status, on stdout.
"""

import gc
import json
import multiprocessing
import os
import runpy
import signal
import sys

import numpy  # noqa: F401
import scipy.stats  # noqa: F401
import torch  # noqa: F401
from rouge_score import rouge_scorer  # noqa: F401
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast  # noqa: F401
from transformers.models.llama import modeling_llama  # noqa: F401


def become(module: str, args: list[str], folder: str, env: dict[str, str], output: str, errors: str) -> None:
    """Runs a module as the interpreter does for `python -m`."""
    for number, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    # A suite started in the background ignores Ctrl-C, and what it starts would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[0], sys.argv[1:] = folder, args
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    fork = multiprocessing.get_context("fork")
    # What the libraries made is not looked through again in every fork, which would copy it.
    gc.freeze()
    for line in sys.stdin:
        process = fork.Process(target=become, kwargs=json.loads(line))
        process.start()
        print(process.pid, flush=True)
        process.join()
        print(process.exitcode, flush=True)
    gc.unfreeze()


if __name__ == "__main__":
    main()
