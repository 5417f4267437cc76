"""What a visitor may upload, and how texts are cut. Every bound has its own sentence when it is passed."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class LibraryLimits:
    """Bounds of uploads, and the size of chunks.

    Args:
        file_bytes: of one file.
        num_pages, num_rows: of one PDF or Word text, of one table.
        num_chars: of the text that a file gives.
        unpacked_bytes: of all members of a .docx, unpacked.
        owner_bytes, owner_documents, owner_libraries: of all that one owner has.
        owner_hours: documents of an owner who was not seen for so long are deleted.
        parse_time_s, parse_memory_bytes: of the process that reads a file.
        chunk_tokens: of a chunk, its title aside.
        overlap_sentences: sentences that a chunk repeats from the one before it.
    """

    file_bytes: int = 20 * MIB
    num_pages: int = 1_000
    num_rows: int = 20_000
    num_chars: int = 4_000_000
    unpacked_bytes: int = 100 * MIB
    owner_bytes: int = 60 * MIB
    owner_documents: int = 50
    owner_libraries: int = 10
    owner_hours: float = 24.0
    parse_time_s: float = 60.0
    parse_memory_bytes: int = 1024 * MIB
    chunk_tokens: int = 160
    overlap_sentences: int = 1
