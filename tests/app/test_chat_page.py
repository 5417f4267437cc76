"""The Chat tab in a browser, over made-up turns and the real library: what a visitor with a file sees, presses and gets."""

import re

import pytest
from fake_runs import INJECTION
from launch import visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TEXT = "The zeppelin of Orsund is painted blue. It flies on Sundays."
FOUNDER = "Who was the founder of the railway?"
LIBRARY = "Varnsee–Tschillerjoch Railway"
# The chunks come first, then the questions on offer.
OPENED = {"query": "tab=chat", "ready": "#chat-thread .fs-chat-offer"}


@pytest.fixture(scope="module")
def opened(browser, plain_url):
    """One page for all tests that stay in the tab: opening it takes longer than they do."""
    with visiting(browser, plain_url, **OPENED) as visit:
        yield visit


@pytest.fixture
def visit(opened):
    begin_anew(opened.page)
    yield opened
    assert opened.problems == []


@pytest.fixture
def chatting_phone(phone):
    phone.page.get_by_role("tab", name="Chat", exact=True).click()
    phone.page.locator("#chat-thread .fs-chat-offer, #chat-thread .fs-chat-turn").first.wait_for()
    begin_anew(phone.page)
    return phone


def begin_anew(page):
    """Leaves an empty conversation, the first bundled library and no documents of the visitor's; all of it has come when this returns."""
    documents, question = page.locator("#chat-documents"), page.locator("#chat-question textarea")
    question.fill("This goes with the old conversation.")
    page.locator("#chat-new").click()
    expect(question).to_have_value("")
    expect(page.locator("#chat-thread .fs-chat-turn")).to_have_count(0)
    if documents.get_by_role("button", name="Delete all my documents").count():
        documents.get_by_role("button", name="Delete all my documents").click()
        documents.locator(".fs-chat-foot .fs-chat-danger").click()
        page.locator("#chat-upload-status").get_by_text("All your documents are deleted").wait_for()
    if page.locator("#chat-library-name input").input_value() != LIBRARY:
        page.locator("#chat-library-name input").click()
        page.get_by_role("option", name=LIBRARY).click()
    documents.get_by_label(f"Documents of {LIBRARY}").locator(".fs-chat-chunk").first.wait_for()
    expect(page.locator("#chat-thread h3")).to_have_text(f"Ask “{LIBRARY}” anything")


def ask(page, question):
    box = page.locator("#chat-question textarea")
    box.fill(question)
    box.press("Enter")


def answered(page, num):
    """Waits until so many turns are over."""
    expect(page.locator("#chat-thread .fs-chat-turn")).to_have_count(num)
    expect(page.locator("#chat-send")).to_be_enabled()
    expect(page.locator("#chat-stop")).to_be_disabled()
    return page.locator("#chat-thread .fs-chat-turn").last


def drop(page, folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    page.locator("#chat-drop input[type=file]").set_input_files(path)


def test_chunks_are_there_before_anything_is_asked_and_a_question_on_offer_is_answered(visit):
    page = visit.page
    chunk = page.locator("#chat-documents .fs-chat-chunk").first
    expect(chunk.locator("code")).to_have_text(re.compile("^.{12}$"))
    expect(chunk).to_contain_text("KV")
    offer = page.locator("#chat-thread .fs-chat-offer").first
    question = offer.inner_text()
    offer.click()
    turn = answered(page, 1)
    expect(turn.locator(".fs-chat-question .fs-chat-text")).to_have_text(question)
    expect(turn).to_contain_text("LIVE")
    expect(turn.locator(".fs-chat-ttft")).to_contain_text("0.31 s")
    expect(page.locator("#chat-live .fs-chat-answer")).to_have_count(0)
    shown = [int(one.replace(",", "")) for one in turn.locator(".fs-chat-bar-list strong").all_inner_texts()]
    assert len(shown) >= 3
    expect(turn.locator(".fs-chat-slice")).to_have_count(len(shown))


def test_the_next_turn_has_prefix_hits(visit):
    page = visit.page
    ask(page, FOUNDER)
    answered(page, 1)
    ask(page, "And what did the founder of the railway do?")
    expect(answered(page, 2)).to_contain_text("prefix cache hits")
    expect(page.locator("#chat-question textarea")).to_have_value("")


def test_a_citation_shows_its_chunk_and_leads_back(visit):
    page = visit.page
    # The library is drawn again after an answer, which would take the chunk from under the keyboard: asked for with its shelf alone.
    with page.expect_response(lambda response: (response.request.post_data or "").startswith('{"data":[null],')):
        ask(page, FOUNDER)
        turn = answered(page, 1)
    cite = turn.locator(".fs-chat-cite").first
    name = cite.get_attribute("title")
    cite.press("Enter")
    focus = page.locator("#chat-documents .fs-chat-chunk-focus")
    expect(focus).to_be_focused()
    expect(focus).to_contain_text(name)
    focus.get_by_role("button", name="Back to the answer").click()
    expect(cite).to_be_focused()


def test_dropped_files_are_taken_or_refused_asked_about_and_their_kv_is_computed(visit, tmp_path):
    page, documents, told = visit.page, visit.page.locator("#chat-documents"), visit.page.locator("#chat-upload-status")
    drop(page, tmp_path, "report.pdf", b"%PDF-1.7 rubbish")
    expect(told.locator(".fs-status-error")).to_contain_text("report.pdf")
    assert "Traceback" not in page.content()
    drop(page, tmp_path, "zeppelin.md", f"# Airships\n\n{TEXT}\n")
    told.get_by_text("One document is searchable now").wait_for()
    documents.get_by_text("KV of all chunks stored").wait_for()
    expect(page.locator("#chat-library-name input")).to_have_value("My documents")
    expect(documents).to_contain_text("visible in this page only")
    ask(page, "What colour is the zeppelin?")
    turn = answered(page, 1)
    turn.locator("summary").click()
    expect(turn.locator(".fs-chat-source")).to_have_count(1)
    documents.get_by_role("button", name="Delete", exact=True).click()
    documents.get_by_role("button", name="Keep").wait_for()
    documents.locator(".fs-chat-danger").click()
    documents.get_by_text("Nothing here yet").wait_for()


def test_own_libraries_are_searched_in_part_renamed_and_deleted(visit, tmp_path):
    page, documents, told = visit.page, visit.page.locator("#chat-documents"), visit.page.locator("#chat-upload-status")
    for name in ("blue", "red"):
        (tmp_path / f"{name}.txt").write_text(f"The zeppelin of {name} harbour is painted {name}.")
    page.locator("#chat-drop input[type=file]").set_input_files([tmp_path / "blue.txt", tmp_path / "red.txt"])
    told.get_by_text("2 documents are searchable now").wait_for()
    expect(documents.get_by_text("KV of all chunks stored")).to_have_count(2)
    documents.get_by_label("Search in red.txt").uncheck()
    documents.get_by_text("Search in 1 of 2 documents").wait_for()
    # The page counts at once; once the server knows as well, it has nothing more to say of the upload.
    expect(told).not_to_contain_text("searchable")
    ask(page, "What colour is the zeppelin?")
    turn = answered(page, 1)
    expect(turn.locator("summary")).to_have_text("1 chunk retrieved from 1 of 2 documents, most relevant first")
    documents.get_by_role("button", name="Rename").click()
    expect(documents.get_by_label("New name of the library")).to_be_focused()
    page.keyboard.type("alpine-railway")
    page.keyboard.press("Enter")
    told.get_by_text("There is a library 'alpine-railway' already").wait_for()
    documents.get_by_label("New name of the library").fill("Airships")
    documents.get_by_label("New name of the library").press("Enter")
    told.get_by_text("Renamed").wait_for()
    expect(page.locator("#chat-library-name input")).to_have_value("Airships")
    expect(documents.get_by_label("Search in red.txt")).not_to_be_checked()
    documents.get_by_role("button", name="Delete library").click()
    documents.get_by_role("button", name="Keep").click()
    documents.get_by_role("button", name="Delete library").wait_for()
    expect(documents.locator(".fs-chat-document")).to_have_count(2)
    documents.get_by_role("button", name="Delete library").click()
    documents.locator(".fs-chat-library-head .fs-chat-danger").click()
    documents.get_by_text("Nothing here yet").wait_for()


def test_an_answer_grows_stops_is_asked_for_again_and_edited(visit):
    page, live = visit.page, visit.page.locator("#chat-live [aria-live=polite]")
    ask(page, "Which railway never ends?")
    # Every time, the answer has all its words and goes on until it is stopped.
    expect(live).to_contain_text("every visitor knows.")
    page.locator("#chat-stop").click()
    turn = answered(page, 1)
    expect(turn).to_contain_text("Stopped.")
    expect(turn).to_contain_text("every visitor knows.")
    turn.get_by_role("button", name="Retry").click()
    expect(live).to_contain_text("every visitor knows.")
    expect(page.locator("#chat-thread .fs-chat-turn")).to_have_count(0)
    page.locator("#chat-stop").click()
    answered(page, 1)
    ask(page, FOUNDER)
    answered(page, 2)
    page.get_by_role("button", name="Edit question 1").click()
    page.locator("#chat-status").get_by_text("drops its answer and the turn behind it").wait_for()
    expect(page.locator("#chat-question textarea")).to_have_value("Which railway never ends?")
    ask(page, "At which altitude is the summit station?")
    expect(answered(page, 1)).to_contain_text("At which altitude is the summit station?")


def test_an_engine_error_is_a_sentence_and_the_next_question_works(visit):
    page = visit.page
    ask(page, "Did the railway fail?")
    expect(answered(page, 1)).to_contain_text("The chunk store is full")
    assert "Traceback" not in page.content()
    ask(page, " ")
    page.locator("#chat-status .fs-status-error").get_by_text("question is empty").wait_for()
    ask(page, FOUNDER)
    expect(answered(page, 2)).to_contain_text("LIVE")


def test_hostile_text_stays_text(visit, tmp_path):
    page = visit.page
    drop(page, tmp_path, "<img src=x onerror=window.__pwned=5> ${1+1} {{value}}.txt", f"{INJECTION}\n\n{TEXT}")
    page.locator("#chat-upload-status").get_by_text("searchable now").wait_for()
    ask(page, f"What colour is the zeppelin? {INJECTION}")
    turn = answered(page, 1)
    expect(turn).to_contain_text("${window.__pwned=1} and {{value}}")
    expect(turn).to_contain_text("<b>bold?</b>")
    expect(page.locator("#chat-documents .fs-chat-chunk").first).to_contain_text("<img src=x")
    assert page.evaluate("window.__pwned") is None
    for part in ("thread", "live", "documents", "status", "upload-status"):
        expect(page.locator(f"#chat-{part} img, #chat-{part} script, #chat-{part} b")).to_have_count(0)


def test_two_visitors_share_neither_documents_nor_conversation(visit, chatting_phone, tmp_path):
    first, second = visit.page, chatting_phone.page
    drop(first, tmp_path, "secret.txt", "The secret word is Xylophonium.")
    first.locator("#chat-upload-status").get_by_text("searchable now").wait_for()
    ask(first, "Which secret word never ends?")
    first.locator("#chat-live").get_by_text("The notes").wait_for()
    ask(second, FOUNDER)
    second.locator("#chat-live").get_by_text("Waiting: 1 request ahead").wait_for()
    first.locator("#chat-stop").click()
    answered(first, 1)
    answered(second, 1)
    second.locator("#chat-library-name input").click()
    second.get_by_role("option", name="My documents").click()
    second.locator("#chat-documents").get_by_text("Nothing here yet").wait_for()
    assert "secret" not in second.content().lower().replace("xylophonium", "secret")


def test_the_tab_never_scrolls_sideways(visit, chatting_phone):
    for one in (visit, chatting_phone):
        ask(one.page, f"{FOUNDER} {'x' * 300}")
        turn = answered(one.page, 1)
        # Closed, although a conversation before may have had its sources open.
        expect(turn.locator(".fs-chat-source").first).to_be_hidden()
        turn.locator("summary").click()
        turn.locator(".fs-chat-source").first.wait_for()
        one.wait_until_it_fits()


# The last one: it leaves another run in the Fuse tab.
def test_compare_and_details_open_the_run_in_the_fuse_tab(visit):
    page = visit.page
    ask(page, FOUNDER)
    answered(page, 1)
    page.get_by_role("button", name="Compare with full prefill").click()
    page.locator("#chat-thread .fs-chat-compared").get_by_text("than full prefill here").wait_for()
    page.get_by_role("button", name="View details").click()
    page.locator("#fuse-banner .fs-badge-live").wait_for()
    expect(page.locator("#fuse-banner")).to_contain_text(FOUNDER)
    expect(page.locator("#fuse-cards .fs-card")).to_have_count(2)
    page.get_by_role("button", name="Back to chat").click()
    expect(page.get_by_role("button", name="View details")).to_be_focused()
    expect(page.locator("#chat-thread .fs-chat-compared")).to_have_count(1)
    # The way back is there as long as the run is.
    page.get_by_role("tab", name="Fuse", exact=True).click()
    expect(page.locator("#fuse-back")).to_be_visible()
    page.locator("#fuse-scenario input").click()
    page.get_by_role("option").last.click()
    expect(page.locator("#fuse-back")).to_be_hidden()
