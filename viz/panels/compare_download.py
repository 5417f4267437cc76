"""Files a visitor takes away from the Compare tab. Knows nothing of Gradio."""

import re

from engine.claims.claim import data_name
from engine.results import ResultSet
from engine.resultsfile import dump_results
from viz.panels.compare_csv import results_csv
from viz.panels.run_download import write_download


def csv_file(results: ResultSet | None) -> str | None:
    """Returns the path of all rows as CSV, None without a set."""
    return None if results is None else write_download(f"{_stem(results)}.csv", results_csv(results))


def json_file(results: ResultSet | None) -> str | None:
    """Returns the path of the whole set as a file that the tab opens again, None without a set."""
    return None if results is None else write_download(f"{_stem(results)}.json", dump_results(results))


def _stem(results: ResultSet) -> str:
    """Returns 'fusescope-results-<data>-<model>-<date>' with plain characters only."""
    source = results.provenance
    text = f"results-{data_name(results.data)}-{source.model}-{source.created[:10]}"
    return f"fusescope-{re.sub(r'[^A-Za-z0-9]+', '-', text).strip('-')[:100]}"
