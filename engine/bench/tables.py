"""The table, the comparisons that matter and the times at equal quality, for people."""

from collections.abc import Mapping, Sequence

from engine.bench.configs import Config
from engine.bench.report import print_table

_SHOWN = ("kl_to_full", "rouge_l", "ttft_ratio", "kl_ratio")
_NAMES = {"kl_to_full": "KL", "rouge_l": "ROUGE-L", "ttft_ratio": "TTFT x", "kl_ratio": "KL x"}


def print_results(result: Mapping[str, object]) -> None:
    """Prints a finished benchmark without its last JSON line."""
    print_rows(result["rows"])
    if result.get("rows_yes_no"):
        print(f"\nof these, {result['rows_yes_no'][0]['n']} yes/no questions:")
        print_rows(result["rows_yes_no"])
    _print_comparisons(result["comparisons"])
    _print_equal_quality(result["latency_at_equal_quality"])
    print()


def print_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Prints one line a method and ratio."""
    header = ("method", "ratio", "TTFT s", "speed-up", "of limit", "by work", "answered", "ROUGE-L", "F1", "gold NLL", "KL to full")
    print_table(
        header,
        [
            (
                r["method"],
                "-" if r["ratio"] is None else f"{r['ratio']:g}",
                _number(r["ttft_s"]["median"]),
                f"{r['speedup']['median']:.2f} [{r['speedup']['lo']:.2f}, {r['speedup']['hi']:.2f}]",
                f"{100 * r['limit_share']:.0f} %",
                "-" if r["work_limit_share"] is None else f"{100 * r['work_limit_share']:.0f} %",
                "-" if r["answered"] is None else f"{100 * r['answered']:.0f} %",
                *(_number(r[name]) for name in ("rouge_l", "f1", "gold_nll")),
                "-" if r["kl_to_full"] is None else _interval(r["kl_to_full"]),
            )
            for r in rows
        ],
    )


def _print_comparisons(comparisons: Sequence[Mapping[str, object]]) -> None:
    """Prints the pairs against the papers' methods that have a ratio on both sides; * where an interval excludes no difference."""
    lines: dict[tuple[object, ...], list[str]] = {}
    for entry in comparisons:
        versus = Config(entry["versus"], entry["versus_ratio"])
        if entry["ratio"] is not None and versus.ratio is not None and not versus.is_ours and entry["metric"] in _SHOWN:
            nothing = 1.0 if entry["metric"].endswith("_ratio") else 0.0
            mark = "" if entry["lo"] <= nothing <= entry["hi"] else " *"
            pair = (entry["method"], entry["ratio"], entry["versus"], entry["versus_ratio"])
            lines.setdefault(pair, []).append(f"{_NAMES[entry['metric']]} {_interval(entry)}{mark}")
    if lines:
        print("\ndifferences on the same samples (x: ratios), 95 % intervals, * where they exclude none:")
    for (method, ratio, versus, versus_ratio), found in lines.items():
        print(f"{method}@{ratio:g} - {versus}@{versus_ratio:g}: {'; '.join(found)}")


def _print_equal_quality(entries: Sequence[Mapping[str, object]]) -> None:
    if entries:
        print("\ntime to first token over a rival's at the rival's KL to full prefill:")
    for entry in entries:
        ratio = entry["ttft_ratio"]
        shown = "not reached at any measured ratio" if ratio is None else f"{entry.get('bound', '')} {_interval(ratio)}".strip()
        print(f"{entry['method']} / {entry['versus']}@{entry['versus_ratio']:g} (KL {entry['kl']:.3f}): {shown}")


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _interval(value: Mapping[str, float]) -> str:
    return f"{value['mean']:.3f} [{value['lo']:.3f}, {value['hi']:.3f}]"
