"""Starts an SGLang server with the plugin: `python -m engine.serving.sglang.launch --model-path ... [SGLang's arguments]`.

Sets what the environment needs and hands over to `sglang.launch_server`; nothing has to be installed beside SGLang. `--cpu`, first,
runs it on a machine without a GPU (the environment of requirements-sglang.txt). `--model-path bundled` is the app's own model.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.errors import EngineError
from engine.model.bundled import kept_folder
from engine.settings import Settings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# An idle scheduler would otherwise poll without a pause, and keep a core from whatever else runs.
_CPU_ARGUMENTS = ("--device", "cpu", "--disable-overlap-schedule", "--dtype", "float32", "--mem-fraction-static", "0.3", "--sleep-on-idle")
# Lets answers carry the server's own time to first token.
_TIMES = ("--enable-metrics",)
_NO_GRAPHS = ("--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled")


def environment(base: Mapping[str, str], on_cpu: bool) -> dict[str, str]:
    """Returns the environment of a server: the plugin's folders first on PYTHONPATH, and SGLang's switches for a CPU."""
    folders = [str(ROOT), str(HERE / "path"), *([str(HERE / "cpu")] if on_cpu else [])]
    env = dict(base) | {"PYTHONPATH": os.pathsep.join([*folders, *filter(None, [base.get("PYTHONPATH")])])}
    if on_cpu:
        env |= {"SGLANG_USE_CPU_ENGINE": "1"}
        env.setdefault("SGLANG_CPU_OMP_THREADS_BIND", ",".join(map(str, sorted(os.sched_getaffinity(0)))))
    return env


def command(arguments: Sequence[str], on_cpu: bool) -> list[str]:
    """Returns the command line of a server."""
    return [sys.executable, "-m", "sglang.launch_server", *((*_CPU_ARGUMENTS, *_NO_GRAPHS) if on_cpu else ()), *_TIMES, *arguments]


def with_bundled(arguments: Sequence[str], settings: Settings) -> list[str]:
    """Returns the arguments with the folder of the bundled model in the place of its name. Raises ModelUnavailable."""
    places = [i for i, name in enumerate(arguments[:-1]) if name in ("--model-path", "--model") and arguments[i + 1] == "bundled"]
    found = list(arguments)
    for i in places:
        found[i + 1] = str(kept_folder(settings))
    return found


def main(arguments: Sequence[str]) -> None:
    """Becomes the server, or ends with one sentence."""
    on_cpu = bool(arguments) and arguments[0] == "--cpu"
    try:
        rest = with_bundled(arguments[1:] if on_cpu else arguments, Settings.from_env())
    except EngineError as error:
        sys.exit(str(error))
    argv = command(rest, on_cpu)
    os.execve(argv[0], argv, environment(os.environ, on_cpu))


if __name__ == "__main__":
    main(sys.argv[1:])
