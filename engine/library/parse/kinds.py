"""Tells what kind of document a file is: its name and its bytes must agree. Knows nothing of what is inside."""

import codecs
import io
import re
import string
import unicodedata
import zipfile

from engine.errors import BadDocument

KINDS = ("txt", "md", "pdf", "csv", "html", "docx")
MAX_NAME_CHARS = 120
_ENDINGS = {
    "txt": "txt",
    "text": "txt",
    "md": "md",
    "markdown": "md",
    "pdf": "pdf",
    "csv": "csv",
    "html": "html",
    "htm": "html",
    "docx": "docx",
}
_PDF_WITHIN = 1024
# The first bytes of what people upload by mistake, and what it is called.
_MAGIC = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\xd0\xcf\x11\xe0", "an old or encrypted Office file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF text"),
    (b"SQLite format 3", "a database"),
)
_HTML_START = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(rb"<(/?[a-z][a-z0-9]*)\b[^<>]*>", re.IGNORECASE)
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset\s*=\s*[\"']?([a-z0-9_-]{1,40})", re.IGNORECASE)
_PAGE_HEAD_BYTES = 4096
_PAGE_ENCODINGS = {
    *("iso8859-1", "iso8859-2", "iso8859-5", "iso8859-7", "iso8859-9", "iso8859-15", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254"),
    *("cp1255", "cp1256", "cp1257", "koi8-r", "shift_jis", "cp932", "euc_jp", "euc_kr", "gb2312", "gbk", "gb18030", "big5"),
}
_HIGH_BYTES = bytes(range(0x80, 0x100))
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\r\f\v"))
# Only these are looked at for signs of a kind.
_HEAD_BYTES = 64 * 1024


def shown_name(name: str) -> str:
    """Returns a file's name fit to be shown: no folders, no control or direction-changing characters, at most 120 characters."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    kept = "".join(c for c in last if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
    kept = " ".join(kept.split())
    if len(kept) > MAX_NAME_CHARS:
        stem, dot, ending = kept.rpartition(".")
        kept = f"{stem[: MAX_NAME_CHARS - 8]}…{dot}{ending[:6]}" if dot and len(ending) <= 8 else kept[:MAX_NAME_CHARS]
    return kept.strip() if kept.strip(". ") else "unnamed"


def kind_of(name: str, data: bytes) -> str:
    """Returns the kind of a file. Raises BadDocument (without the subject) where name and content do not agree.

    Args:
        name: as shown, see `shown_name`.
    """
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    kind = _ENDINGS.get(ending)
    if kind is None:
        listed = ", ".join(f".{known}" for known in KINDS)
        raise BadDocument(f"is of no known kind; upload one of {listed}.")
    if not data:
        raise BadDocument("is empty (0 bytes); there is nothing to ask about.")
    if kind == "pdf":
        return _check_pdf(data)
    if kind == "docx":
        return _check_docx(data)
    return _check_text(kind, data)


def decode(data: bytes) -> str:
    """Returns the text of bytes: UTF-8 or UTF-16 with a mark, UTF-8 (a few broken bytes are left out), else Windows-1252.

    Raises BadDocument on what is not text, or in an encoding that cannot be told.
    """
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return _strict(data, encoding)
    if b"\0" in data:
        raise BadDocument("holds binary data, not text; upload the document it was made from.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = _mended(data) or _western(data)
    num_controls = _count(data, _CONTROLS)
    if num_controls * 100 > len(text):
        raise BadDocument("holds binary data, not text; upload the document it was made from.")
    return text


def decode_page(data: bytes) -> str:
    """Returns the text of a web page: by the encoding that it names where Python knows it, else as `decode` does."""
    named = _CHARSET.search(data[:_PAGE_HEAD_BYTES])
    if named is None or data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return decode(data)
    try:
        encoding = codecs.lookup(named[1].decode("ascii")).name
    except LookupError:
        return decode(data)
    # Codecs that are no character sets (as zip, hex or rot13) decode nothing here.
    return _strict(data, encoding) if encoding in _PAGE_ENCODINGS else decode(data)


def _mended(data: bytes) -> str:
    """Returns text that is UTF-8 but for a few bytes, as where files were cut or joined; "" where it is not."""
    text = data.decode("utf-8", "replace")
    num_broken = text.count("\ufffd")
    num_good = len(text) - len(text.encode("ascii", "ignore")) - num_broken
    return text.replace("\ufffd", "") if num_good >= 4 * num_broken else ""


def _western(data: bytes) -> str:
    """Returns Windows-1252 text. Raises BadDocument on what would be read as nonsense: no western text is mostly accented letters."""
    if _count(data, _HIGH_BYTES) > _count(data, string.ascii_letters.encode()):
        raise BadDocument("is not text in UTF-8 nor in another encoding that can be told; save it as UTF-8 and upload it again.")
    return _strict(data, "cp1252")


def _count(data: bytes, wanted: bytes) -> int:
    """Returns how many of some bytes data holds; much faster than looking at each."""
    return len(data) - len(data.translate(None, wanted))


def _strict(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise BadDocument("is not text in UTF-8; save it as UTF-8 and upload it again.") from None


def _check_pdf(data: bytes) -> str:
    if b"%PDF-" not in data[:_PDF_WITHIN]:
        raise BadDocument(f"is named .pdf but is {_what(data)}; give it the right ending or upload the PDF itself.")
    return "pdf"


def _check_docx(data: bytes) -> str:
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise BadDocument("is encrypted or an old .doc file; save it as .docx without a password.")
    if not data.startswith(b"PK"):
        raise BadDocument(f"is named .docx but is {_what(data)}; give it the right ending or upload the Word file itself.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError):
        raise BadDocument("is a damaged Word file; open it in a word processor and save it anew.") from None
    if not {"[Content_Types].xml", "word/document.xml"} <= names:
        raise BadDocument("is named .docx but is a zip archive of something else; upload the Word file itself.")
    return "docx"


def _check_text(kind: str, data: bytes) -> str:
    head = data[:_HEAD_BYTES]
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise BadDocument(f"is named .{kind} but is {what}; give it the right ending, or upload its text.")
    _ = decode_page(data) if kind == "html" else decode(data)
    is_page = bool(_HTML_START.match(head.removeprefix(b"\xef\xbb\xbf")))
    if kind == "html" and not is_page and not _TAG.search(data):
        raise BadDocument("is named .html but has no tags in it; rename it to .txt.")
    if kind != "html" and is_page:
        raise BadDocument(f"is named .{kind} but is a web page; rename it to .html.")
    return kind


def _what(data: bytes) -> str:
    return next((what for magic, what in _MAGIC if data.startswith(magic)), "something else")
