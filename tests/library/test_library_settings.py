"""Limits of the library come from the environment, each within its bounds."""

import pytest

from engine.errors import BadRequest
from engine.library.limits import MIB, LibraryLimits
from engine.settings import Settings

VARIABLES = {
    "FILE_MIB": ("file_bytes", "3", 3 * MIB),
    "FILE_PAGES": ("num_pages", "12", 12),
    "FILE_ROWS": ("num_rows", "99", 99),
    "FILE_CHARS": ("num_chars", "5000", 5000),
    "UNPACKED_MIB": ("unpacked_bytes", "7", 7 * MIB),
    "OWNER_MIB": ("owner_bytes", "8", 8 * MIB),
    "OWNER_DOCUMENTS": ("owner_documents", "4", 4),
    "OWNER_LIBRARIES": ("owner_libraries", "2", 2),
    "OWNER_HOURS": ("owner_hours", "1.5", 1.5),
    "PARSE_S": ("parse_time_s", "9.5", 9.5),
    "PARSE_MIB": ("parse_memory_bytes", "256", 256 * MIB),
    "CHUNK_TOKENS": ("chunk_tokens", "64", 64),
    "OVERLAP_SENTENCES": ("overlap_sentences", "0", 0),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_sets_its_limit_and_refuses_nonsense(name):
    field, text, value = VARIABLES[name]
    assert getattr(Settings.from_env({f"FUSESCOPE_{name}": text}).library, field) == value
    for wrong in ("many", "-1", "1e30"):
        with pytest.raises(BadRequest, match=f"FUSESCOPE_{name} is"):
            Settings.from_env({f"FUSESCOPE_{name}": wrong})


def test_every_limit_has_a_variable_and_its_default():
    assert {field for field, _, _ in VARIABLES.values()} == set(LibraryLimits.__slots__)
    assert Settings.from_env({}).library == LibraryLimits() and Settings.from_env({}).embedder == ""
    assert Settings.from_env({"FUSESCOPE_EMBEDDER": " minilm "}).embedder == "minilm"
