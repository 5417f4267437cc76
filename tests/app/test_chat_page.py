"""The Chat tab in a browser, over made-up turns and the real library: what a visitor with a file sees, presses and gets."""

import pytest
from fake_runs import INJECTION
from launch import served, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TEXT = "The zeppelin of Orsund is painted blue. It flies on Sundays."
FOUNDER = "Who was the founder of the railway?"


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession", delay_s=0.03, kv_delay_s=0.05) as address:
        yield address


@pytest.fixture(scope="module")
def opened(browser, url):
    """One page for most tests: opening it takes longer than they do."""
    with visiting(browser, url) as visit:
        open_chat(visit.page)
        yield visit


@pytest.fixture
def visit(opened):
    """The page with an empty conversation, the first bundled library and no documents of the visitor's."""
    page = opened.page
    page.get_by_role("tab", name="Chat", exact=True).click()
    page.locator("#chat-new").click()
    if page.locator("#chat-documents").get_by_role("button", name="Delete all my documents").count():
        page.locator("#chat-documents").get_by_role("button", name="Delete all my documents").click()
        page.locator("#chat-documents .fs-chat-foot .fs-chat-danger").click()
        page.locator("#chat-upload-status").get_by_text("All your documents are deleted").wait_for()
    page.locator("#chat-library-name input").click()
    page.get_by_role("option", name="Varnsee").click()
    page.locator("#chat-thread .fs-chat-offer").first.wait_for()
    page.locator("#chat-documents .fs-chat-chunk").first.wait_for()
    yield opened
    assert opened.problems == []


def open_chat(page):
    page.get_by_role("tab", name="Chat", exact=True).click()
    page.locator("#chat-thread .fs-chat-offer").first.wait_for()
    page.locator("#chat-documents .fs-chat-chunk").first.wait_for()


def ask(page, question):
    page.locator("#chat-question textarea").fill(question)
    page.keyboard.press("Enter")


def answered(page, num):
    """Waits until so many turns are over."""
    page.wait_for_function("(num) => document.querySelectorAll('#chat-thread .fs-chat-turn').length === num", arg=num)
    page.locator("#chat-send:enabled").wait_for()
    return page.locator("#chat-thread .fs-chat-turn").last


def drop(page, folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    page.locator("#chat-drop input[type=file]").set_input_files(path)


def test_chunks_are_there_before_anything_is_asked_and_a_question_on_offer_is_answered(visit):
    page = visit.page
    chunk = page.locator("#chat-documents .fs-chat-chunk").first
    assert len(chunk.locator("code").inner_text()) == 12 and "KV" in chunk.inner_text()
    offer = page.locator("#chat-thread .fs-chat-offer").first
    question = offer.inner_text()
    offer.click()
    turn = answered(page, 1)
    assert turn.locator(".fs-chat-question").inner_text().startswith(question) and "LIVE" in turn.inner_text()
    expect("0.31 s" in turn.locator(".fs-chat-ttft").inner_text() and page.locator("#chat-live .fs-chat-answer")).to_have_count(0)
    shown = [int(one.inner_text().replace(",", "")) for one in turn.locator(".fs-chat-bar-list strong").all()]
    expect(len(shown) >= 3 and turn.locator(".fs-chat-slice")).to_have_count(len(shown))
    assert "relevance" in turn.locator("details").text_content()


def test_an_answer_streams_and_a_second_turn_has_prefix_hits(visit):
    page = visit.page
    ask(page, FOUNDER)
    live = page.locator("#chat-live [aria-live=polite]")
    live.get_by_text("The notes").wait_for()
    answered(page, 1)
    ask(page, "And what did the founder of the railway do?")
    turn = answered(page, 2)
    assert "prefix cache hits" in turn.inner_text() and page.locator("#chat-question textarea").input_value() == ""


def test_a_citation_shows_its_chunk_and_leads_back(visit):
    page = visit.page
    ask(page, FOUNDER)
    cite = answered(page, 1).locator(".fs-chat-cite").first
    name = cite.get_attribute("title")
    cite.focus()
    page.keyboard.press("Enter")
    focus = page.locator("#chat-documents .fs-chat-chunk-focus")
    focus.wait_for()
    assert name in focus.inner_text() and page.evaluate("document.activeElement.classList.contains('fs-chat-chunk-focus')")
    focus.get_by_role("button", name="Back to the answer").click()
    assert page.evaluate("document.activeElement.classList.contains('fs-chat-cite')")


def test_a_dropped_file_is_asked_about_and_its_kv_is_computed(visit, tmp_path):
    page = visit.page
    drop(page, tmp_path, "zeppelin.md", f"# Airships\n\n{TEXT}\n")
    page.locator("#chat-upload-status").get_by_text("One document is searchable now").wait_for()
    page.locator("#chat-documents").get_by_text("KV of all chunks stored").wait_for()
    assert page.locator("#chat-library-name input").input_value() == "My documents"
    assert "visible in this page only" in page.locator("#chat-documents").inner_text()
    ask(page, "What colour is the zeppelin?")
    turn = answered(page, 1)
    turn.locator("summary").click()
    expect(turn.locator(".fs-chat-source")).to_have_count(1)
    page.locator("#chat-documents").get_by_role("button", name="Delete", exact=True).click()
    page.locator("#chat-documents").get_by_role("button", name="Keep").wait_for()
    page.locator("#chat-documents .fs-chat-danger").click()
    page.locator("#chat-documents").get_by_text("Nothing here yet").wait_for()


def test_own_libraries_are_searched_in_part_renamed_and_deleted(visit, tmp_path):
    page, documents = visit.page, visit.page.locator("#chat-documents")
    for name in ("blue", "red"):
        (tmp_path / f"{name}.txt").write_text(f"The zeppelin of {name} harbour is painted {name}.")
    page.locator("#chat-drop input[type=file]").set_input_files([tmp_path / "blue.txt", tmp_path / "red.txt"])
    page.locator("#chat-upload-status").get_by_text("2 documents are searchable now").wait_for()
    documents.get_by_label("Search in red.txt").uncheck()
    documents.get_by_text("Search in 1 of 2 documents").wait_for()
    ask(page, "What colour is the zeppelin?")
    turn = answered(page, 1)
    expect(turn.locator("summary")).to_have_text("1 chunk retrieved from 1 of 2 documents, most relevant first")
    documents.get_by_role("button", name="Rename").click()
    page.keyboard.type("alpine-railway")
    page.keyboard.press("Enter")
    page.locator("#chat-upload-status").get_by_text("There is a library 'alpine-railway' already").wait_for()
    documents.get_by_label("New name of the library").fill("Airships")
    page.keyboard.press("Enter")
    page.locator("#chat-upload-status").get_by_text("Renamed").wait_for()
    expect(page.locator("#chat-library-name input")).to_have_value("Airships")
    expect(documents.get_by_label("Search in red.txt")).not_to_be_checked()
    documents.get_by_role("button", name="Delete library").click()
    documents.get_by_role("button", name="Keep").click()
    expect(documents.locator(".fs-chat-document")).to_have_count(2)
    documents.get_by_role("button", name="Delete library").click()
    documents.locator(".fs-chat-library-head .fs-chat-danger").click()
    documents.get_by_text("Nothing here yet").wait_for()


def test_a_broken_file_is_a_sentence_and_the_next_one_is_taken(visit, tmp_path):
    page = visit.page
    drop(page, tmp_path, "report.pdf", b"%PDF-1.7 rubbish")
    error = page.locator("#chat-upload-status .fs-status-error")
    error.get_by_text("report.pdf").wait_for()
    assert "Traceback" not in page.content()
    drop(page, tmp_path, "zeppelin.txt", TEXT)
    page.locator("#chat-upload-status").get_by_text("One document is searchable now").wait_for()


def test_stop_retry_and_edit(visit):
    page = visit.page
    ask(page, "Which railway never ends?")
    page.locator("#chat-live").get_by_text("knows.").wait_for()
    page.locator("#chat-stop").click()
    turn = answered(page, 1)
    assert "Stopped." in turn.inner_text() and "every visitor knows." in turn.inner_text()
    ask(page, FOUNDER)
    answered(page, 2)
    page.get_by_role("button", name="Edit question 1").click()
    page.locator("#chat-status").get_by_text("drops its answer and the turn behind it").wait_for()
    box = page.locator("#chat-question textarea")
    assert box.input_value() == "Which railway never ends?"
    ask(page, "At which altitude is the summit station?")
    answered(page, 1)
    page.get_by_role("button", name="Retry").click()
    page.locator("#chat-live .fs-chat-answer").wait_for()
    answered(page, 1)


def test_an_engine_error_is_a_sentence_and_the_next_question_works(visit):
    page = visit.page
    ask(page, "Did the railway fail?")
    turn = answered(page, 1)
    assert "The chunk store is full" in turn.inner_text() and "Traceback" not in page.content()
    ask(page, " ")
    page.locator("#chat-status .fs-status-error").get_by_text("question is empty").wait_for()
    ask(page, FOUNDER)
    assert "LIVE" in answered(page, 2).inner_text()


def test_compare_and_details_open_the_run_in_the_fuse_tab(visit):
    page = visit.page
    ask(page, FOUNDER)
    answered(page, 1)
    page.get_by_role("button", name="Compare with full prefill").click()
    page.locator("#chat-thread .fs-chat-compared").get_by_text("than full prefill here").wait_for()
    page.get_by_role("button", name="View details").click()
    page.locator("#fuse-banner .fs-badge-live").wait_for()
    assert FOUNDER in page.locator("#fuse-banner").inner_text()
    page.wait_for_function("document.querySelectorAll('#fuse-cards .fs-card').length === 2")
    page.get_by_role("button", name="Back to chat").click()
    expect(page.get_by_role("button", name="View details")).to_be_focused()
    expect(page.locator("#chat-thread .fs-chat-compared")).to_have_count(1)
    # The way back is there as long as the run is.
    page.get_by_role("tab", name="Fuse", exact=True).click()
    expect(page.locator("#fuse-back")).to_be_visible()
    page.locator("#fuse-scenario input").click()
    page.get_by_role("option").last.click()
    expect(page.locator("#fuse-back")).to_be_hidden()


def test_a_new_conversation_begins_empty(visit):
    page = visit.page
    ask(page, FOUNDER)
    answered(page, 1)
    page.locator("#chat-new").click()
    page.locator("#chat-thread .fs-chat-offer").first.wait_for()
    expect(page.locator("#chat-thread .fs-chat-turn")).to_have_count(0)


def test_hostile_text_stays_text(visit, tmp_path):
    page = visit.page
    drop(page, tmp_path, "<img src=x onerror=window.__pwned=5> ${1+1} {{value}}.txt", f"{INJECTION}\n\n{TEXT}")
    page.locator("#chat-upload-status").get_by_text("searchable now").wait_for()
    ask(page, f"What colour is the zeppelin? {INJECTION}")
    turn = answered(page, 1)
    assert page.evaluate("window.__pwned") is None
    assert "${window.__pwned=1} and {{value}}" in turn.inner_text() and "<b>bold?</b>" in turn.inner_text()
    assert "<img src=x" in page.locator("#chat-documents .fs-chat-chunk").first.inner_text()
    for part in ("thread", "live", "documents", "status", "upload-status"):
        expect(page.locator(f"#chat-{part} img, #chat-{part} script, #chat-{part} b")).to_have_count(0)


def test_two_visitors_share_neither_documents_nor_conversation(browser, url, tmp_path):
    with visiting(browser, url) as first, visiting(browser, url) as second:
        for visit in (first, second):
            open_chat(visit.page)
        drop(first.page, tmp_path, "secret.txt", "The secret word is Xylophonium.")
        first.page.locator("#chat-upload-status").get_by_text("searchable now").wait_for()
        ask(first.page, "Which secret word never ends?")
        first.page.locator("#chat-live").get_by_text("The notes").wait_for()
        ask(second.page, FOUNDER)
        second.page.locator("#chat-live").get_by_text("Waiting: 1 request ahead").wait_for()
        first.page.locator("#chat-stop").click()
        answered(second.page, 1)
        second.page.locator("#chat-library-name input").click()
        second.page.get_by_role("option", name="My documents").click()
        second.page.locator("#chat-documents").get_by_text("Nothing here yet").wait_for()
        assert "secret" not in second.page.content().lower().replace("xylophonium", "secret")
        assert first.problems == [] and second.problems == []


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1920, "light")])
def test_the_tab_never_scrolls_sideways(browser, url, width, theme):
    with visiting(browser, url, width, 844 if width < 600 else 1080, theme=theme) as visit:
        open_chat(visit.page)
        ask(visit.page, f"{FOUNDER} {'x' * 300}")
        answered(visit.page, 1)
        visit.page.locator("#chat-thread summary").click()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width and visit.problems == []
