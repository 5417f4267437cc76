"""Search: what users type is words, in any script; ranking depends on the library searched and on nothing else."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_samples import make_text, open_library

from engine.errors import BadRequest
from engine.library.fulltext import MAX_QUERY_WORDS, query_terms, table_sql
from engine.library.search import Scored, merge

ME = "visitor-1"
TEXTS = {
    "lamp.txt": "The lamp of Merrow Point was lit in 1871 by Ada Quill.",
    "ferry.txt": "Ferry times are 7, 9 and 12, and ferries rest at night.",
    "chinese.txt": "灯塔建于1871年，由艾达点亮。",
    "japanese.txt": "灯台は1871年に建てられました。カモメが多いです。",
    "thai.txt": "ประภาคารสร้างขึ้นในปี 1871",
    "arabic.txt": "أُضيئت المنارة في عام 1871 على يد آدا.",
    "hebrew.txt": "המגדלור הודלק בשנת 1871.",
    "hindi.txt": "दीपक की रोशनी दूर तक जाती थी।",
    "german.txt": "Das Leuchtfeuer brennt über dem Hafen, größer als gedacht.",
    "emoji.txt": "The signal 🚢🔥 means a ship on fire.",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    opened = open_library(tmp_path_factory.mktemp("search"))
    for name, text in TEXTS.items():
        opened.add(ME, "Lamps", name, text.encode())
    return opened


@pytest.mark.parametrize(
    "query, name",
    [
        ("who lit the lamp?", "lamp.txt"),
        ("LAMPS", "lamp.txt"),
        ("ferry", "ferry.txt"),
        ("灯塔在哪里？", "chinese.txt"),
        ("カモメ", "japanese.txt"),
        ("ประภาคาร", "thai.txt"),
        ("المنارة", "arabic.txt"),
        ("המגדלור", "hebrew.txt"),
        ("रोशनी", "hindi.txt"),
        ("uber dem hafen", "german.txt"),
        ("GRÖSSER ALS", "german.txt"),
        ("🔥 fire 🚢", "emoji.txt"),
        ("lit" + "\u200b" + " lamp\x00", "lamp.txt"),
    ],
)
def test_words_are_found_in_any_script(library, query, name):
    assert library.search(ME, "Lamps", query)[0].info.document == name


SPELLINGS = {
    "chinese": ("北京是中华人民共和国的首都。长城建于明朝，全长21196公里。", ["首都", "中华人民", "长城有多长", "北京在哪里？", "21196"]),
    "japanese": ("東京タワーは1958年に完成しました。", ["東京タワーの高さ", "ﾀﾜｰ", "タワー", "1958年", "１９５８"]),
    "thai": ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย ก่อตั้งในปี 2325", ["เมืองหลวง", "กรุงเทพ", "๒๓๒๕"]),
    "korean": ("서울은 대한민국의 수도이다. 경복궁은 1395년에 지어졌다.", ["서울", "수도", "경복궁이", "대한민국"]),
    "arabic": ("القاهرة هي عاصمة مصر. بُنيت الأهرامات في عام ١٩٨٥.", ["القاهره", "بنيت", "1985", "الاهرامات", "أهرامات", "والأهرامات"]),
    "hebrew": ("יְרוּשָׁלַיִם היא עיר הבירה.", ["ירושלים"]),
    "persian": ("می\u200cخواهم به تهران بروم و کتاب بخوانم.", ["تهران", "كتاب", "میخواهم"]),
    "turkish": ("İstanbul'da Işık lisesi. Diyarbakır.", ["istanbul", "ISTANBUL", "ışık", "isik", "diyarbakir"]),
    "polish": ("Łódź, Gdańsk und Đà Nẵng, Øresund, Ærø.", ["lodz", "gdansk", "da nang", "oresund", "aero"]),
    "russian": ("Алёна у ёлки.", ["Алена", "елки"]),
    "greek": ("Η Αθήνα είναι πρωτεύουσα.", ["αθηνα", "ΑΘΗΝΑ"]),
    "german": (
        "Die Größe der Straßenbahnhaltestelle am Hauptbahnhof.",
        ["Grösse", "GRÖSSE", "strassenbahnhaltestelle", "Straßenbahn", "Haltestelle", "Bahnhof"],
    ),
    "letters": ("The \ufb01rst o\ufb03ce ﬂoor of ＡＢＣ１２３, façade №5.", ["first", "office", "floor", "abc123", "facade"]),
    "numbers": ("Invoice INV-2024-00123: $1,299.99 on 2024-03-15, v2.3.1.", ["INV-2024-00123", "1299.99", "2024-03-15", "v2.3.1"]),
}


@pytest.fixture(scope="module")
def spelled(tmp_path_factory):
    library = open_library(tmp_path_factory.mktemp("spellings"))
    for name, (text, _) in SPELLINGS.items():
        library.add(ME, "Spellings", f"{name}.txt", text.encode())
    return library


@pytest.mark.parametrize("name, query", [(name, query) for name, (_, queries) in SPELLINGS.items() for query in queries])
def test_one_spelling_finds_another(spelled, name, query):
    found = spelled.search(ME, "Spellings", query)
    assert [hit.info.document for hit in found][:1] == [f"{name}.txt"] and 0 < found[0].chunk.relevance <= 1


@pytest.mark.parametrize("query", ["hof", "Bahnhofsmission", "table", "京北", "%____%", "a" * 50, "00124"])
def test_what_stands_nowhere_is_not_found(spelled, query):
    assert spelled.search(ME, "Spellings", query) == ()


def test_a_word_that_stands_alone_somewhere_is_not_looked_for_in_others(tmp_path):
    library = open_library(tmp_path)
    for name, text in {"a.txt": "Am Hauptbahnhof steht eine Uhr.", "b.txt": "Der Bahnhof hat zwei Gleise."}.items():
        library.add(ME, "Lamps", name, text.encode())
    assert [hit.info.document for hit in library.search(ME, "Lamps", "Bahnhof")] == ["b.txt"]


HOSTILE = [
    *(
        '"',
        '""',
        '"lamp',
        "lamp*",
        "lamp OR",
        "NEAR(lamp ferry, 2)",
        "AND OR NOT",
        "title : lamp",
        "{title body} : lamp",
        "^lamp",
        "lamp - ferry",
    ),
    *("(((((", "-lamp", "lamp + lit", "'; DROP TABLE chunks; --", "%_", "\\", "\ud800 lamp", "lamp\0lit", "🚢", "", "   ", "\n\t", "..."),
    *("a" * 200_000, "lamp " * 40_000, "灯" * 100_000, "é" * 200_000, "\u202elamp", "(" * 100_000, '" OR rowid > 0 OR "'),
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_query_is_never_an_expression(library, query):
    found = library.search(ME, "Lamps", query, num=100)
    assert all(0.0 <= hit.chunk.relevance <= 1.0 for hit in found)
    holds_a_word = any(char.isalnum() for char in query)
    assert holds_a_word or found == ()
    for hit in found:
        # Only chunks with a word of the query are found.
        assert any(term.strip('"').split()[0][:3] in hit.info.text.lower() for term in query_terms(query))


@pytest.fixture(scope="module")
def table():
    db = sqlite3.connect(":memory:")
    db.execute(table_sql("words"))
    db.execute("INSERT INTO words VALUES ('lamp', 'the lamp was lit')")
    return db


@given(st.text(max_size=200) | st.text(alphabet='"*()^:-+{}NEARORAND \0灯塔é\u0301\u200d', max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_makes_a_valid_expression(table, text):
    terms = query_terms(text)
    assert len(terms) <= MAX_QUERY_WORDS
    if terms:
        table.execute("SELECT bm25(words) FROM words WHERE words MATCH ?", (" OR ".join(terms),)).fetchall()


def test_ranking_does_not_depend_on_other_libraries(tmp_path):
    def ranked() -> list[tuple[str, float]]:
        return [(hit.info.text, hit.chunk.relevance) for hit in library.search(ME, "Mine", "storm keeper lamp 7", num=20)]

    library = open_library(tmp_path)
    library.add(ME, "Mine", "a.txt", make_text(1, 300).encode())
    alone = ranked()
    assert len(alone) == 20 and alone[0][1] > alone[-1][1] > 0
    library.add("visitor-2", "Mine", "b.txt", (make_text(2, 300) + " storm" * 500).encode())
    library.add(ME, "Other", "b.txt", make_text(3, 300).encode())
    assert ranked() == alone


def test_relevance_never_rises_down_the_list_and_is_one_at_most(library):
    shares = [hit.chunk.relevance for hit in library.search(ME, "Lamps", "lamp 1871 ferry fire", num=50)]
    assert shares == sorted(shares, reverse=True) and shares[0] <= 1.0


def test_search_keeps_to_the_documents_asked_for(library):
    documents = {info.name: info.document_id for info in library.documents(ME, "Lamps")}
    chosen = [documents["chinese.txt"], documents["hebrew.txt"]]
    found = library.search(ME, "Lamps", "1871", documents=chosen)
    assert {hit.info.document for hit in found} == {"chinese.txt", "hebrew.txt"}
    assert library.search(ME, "Lamps", "1871", documents=[]) == ()


@pytest.mark.parametrize("num", [0, -1, 101])
def test_a_wrong_number_of_chunks_is_one_sentence(library, num):
    with pytest.raises(BadRequest, match="it must be from 1 to 100"):
        library.search(ME, "Lamps", "lamp", num=num)


class LetterEmbedder:
    """Vectors of letter counts: near texts share letters."""

    name = "letters"

    def embed(self, texts):
        counts = np.array([[text.lower().count(chr(97 + i)) + 0.01 for i in range(26)] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_dense_retrieval_is_merged_by_reciprocal_rank(tmp_path):
    library = open_library(tmp_path, embedder=LetterEmbedder())
    for name, text in TEXTS.items():
        library.add(ME, "Lamps", name, text.encode())
    # Without vectors words alone rank.
    assert library.search(ME, "Lamps", "ferry")[0].dense_rank is None
    while jobs := library.kv.texts_wanted(7):
        library.kv.embed(jobs)
    found = library.search(ME, "Lamps", "ferry times at night", num=10)
    assert found[0].info.document == "ferry.txt" and (found[0].bm25_rank, found[0].dense_rank) == (1, 1) and found[0].chunk.relevance == 1.0
    assert any(hit.bm25_rank is None for hit in found)
    shares = [hit.chunk.relevance for hit in found]
    assert shares == sorted(shares, reverse=True)
    only = library.documents(ME, "Lamps")[0]
    assert {hit.info.document for hit in library.search(ME, "Lamps", "ferry", documents=[only.document_id])} == {only.name}


def test_merging_by_hand():
    hits = merge([Scored(1, 0.9), Scored(2, 0.5)], [3, 2])
    assert [hit.row_id for hit in hits] == [2, 1, 3]
    assert hits[0].relevance == pytest.approx((1 / 62 + 1 / 62) / (2 / 61)) and (hits[0].bm25_rank, hits[0].dense_rank) == (2, 2)
    assert [hit.relevance for hit in merge([Scored(1, 0.9), Scored(2, 0.5)], [])] == [0.9, 0.5]
