"""The session predictor: what it learns from, that it learns, that it is honest about held-out conversations, and who it tells."""

import json

import numpy as np
import pytest
import torch
from predictor_samples import card_of, made_predictor
from worlds import tiny_runtime

from engine.errors import BadRequest
from engine.prefix import train_predictor
from engine.prefix.policies import POLICIES
from engine.prefix.predictor import (
    SessionMLP,
    find_predictor,
)
from engine.prefix.predictor_data import (
    Conversation,
    StateReader,
    chitchat_conversations,
    prompts,
    read_conversations,
    told_conversations,
)
from engine.prefix.predictor_scores import ends, resampled, scores, worth
from engine.prefix.predictor_train import Samples, log_loss, split, train
from engine.prefix.request import UNKNOWN
from engine.prefix.roles import ChatFormat, Message, typed
from engine.prefix.serve import PrefixServer
from engine.prefix.serve_prefill import compute_rows
from engine.prefix.serve_types import ServeRequest
from engine.recorder import Recorder

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("predictor"))


@pytest.fixture(scope="module")
def chat(runtime):
    return ChatFormat(runtime.model.tokenizer, lambda text, special: runtime.prompts.tokenize(text, special).ids)


def made_samples(num=400, separable=True, hidden_size=12, share=0.6, seed=0, per_conversation=4):
    """Returns samples of which one direction tells the class, or nothing does."""
    rng = np.random.default_rng(seed)
    goes_on = (rng.random(num) < share).astype(np.int64)
    hidden = rng.normal(3.0, 40.0, (num, hidden_size))
    if separable:
        hidden[:, 3] = 500.0 * goes_on + rng.normal(0.0, 60.0, num)
    turn = np.arange(num) % per_conversation
    known = np.stack([turn, 100 * (turn + 1), np.zeros(num, np.int64)], 1)
    columns = torch.from_numpy(goes_on), torch.arange(num) // per_conversation, torch.from_numpy(known)
    return Samples(torch.tensor(hidden, dtype=torch.float32), *columns)


@pytest.mark.parametrize(("hidden_size", "num_parameters"), [(4096, 1_065_410), (1536, 410_050)])
def test_the_network_has_the_published_size(hidden_size, num_parameters):
    assert sum(parameter.numel() for parameter in SessionMLP(hidden_size).parameters()) == num_parameters


@pytest.mark.parametrize("seed", range(4))
def test_scores_agree_with_their_definitions(seed):
    rng = np.random.default_rng(seed)
    truth, said = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    found = scores(torch.from_numpy(truth), torch.from_numpy(said))
    assert found.accuracy == pytest.approx((truth == said).mean())
    # Matthews' coefficient is the correlation of the two, F1 the harmonic mean of precision and recall.
    assert found.mcc == pytest.approx(np.corrcoef(truth, said)[0, 1])
    precision, recall = truth[said == 1].mean(), said[truth == 1].mean()
    assert found.f1 == pytest.approx(2 / (1 / precision + 1 / recall))


def test_scores_of_one_class_are_defined():
    ones, zeros = torch.ones(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    assert scores(ones, ones) == (1.0, 1.0, 0.0) and scores(zeros, ones) == (0.0, 0.0, 0.0) and scores(zeros, zeros) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_draw_whole_conversations(seed):
    """Against drawing them one by one, metrics by their definitions."""
    rng = np.random.default_rng(seed)
    conversation = np.sort(rng.integers(0, 12, 80))
    truth, said = rng.integers(0, 2, 80), rng.random(80).astype(np.float32)
    found, groups = resampled(truth, said, conversation), [np.flatnonzero(conversation == name) for name in np.unique(conversation)]
    drawn = [np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))]) for _ in range(2_000)]
    alone = [worth(truth[picks], said[picks]) for picks in drawn]
    for name in found._fields:
        np.testing.assert_allclose(ends(getattr(found, name)), ends([getattr(one, name) for one in alone]), atol=0.03)
    assert worth(truth, said).brier == pytest.approx(((said - truth) ** 2).mean(), abs=1e-6)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_probabilities_are_those_of_the_samples_however_rare_a_class_is(share):
    """Of states that tell nothing all that can be learned is how often sessions go on."""
    done = train(made_samples(num=2_000, separable=False, share=share, hidden_size=2), 0)
    assert done.said.mean() == pytest.approx(share, abs=0.06) and done.test.calibration_error < 0.08


@pytest.mark.parametrize("seed", range(3))
def test_no_conversation_is_in_two_parts(seed):
    samples = made_samples(per_conversation=7)
    parts = split(samples, seed)
    groups = [set(part.conversation.tolist()) for part in parts]
    assert not (groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])
    assert sum(part.num for part in parts) == samples.num
    np.testing.assert_allclose([len(group) / len(samples.conversation.unique()) for group in groups], [0.6, 0.2, 0.2], atol=0.03)
    assert all(torch.equal(a.hidden, b.hidden) for a, b in zip(parts, split(samples, seed), strict=True))


def test_what_can_be_told_is_learned_and_what_cannot_is_not():
    assert train(made_samples(), 0).test.mcc > 0.9
    assert abs(train(made_samples(separable=False), 0).test.mcc) < 0.35


def test_the_rarer_class_is_not_given_up():
    done = train(made_samples(num=800, share=0.93), 0)
    assert done.test.mcc > 0.8 and (done.said < 0.5).any()


def test_the_network_kept_is_the_best_on_the_stopping_conversations():
    told = []
    done = train(made_samples(separable=False), 1, lambda epoch, loss: told.append(loss) or True)
    assert log_loss(done.mlp, done.parts[1]) == min(told) and done.num_epochs == len(told) + (len(told) < 50)
    assert train(made_samples(), 0, lambda epoch, loss: False).num_epochs == 1


def test_training_repeats_itself_and_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    first, second = train(made_samples(), 3), train(made_samples(), 3)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(first.mlp.state_dict().values(), second.mlp.state_dict().values(), strict=True))


def test_too_little_to_learn_from_is_refused():
    with pytest.raises(BadRequest, match="There are 5 conversations to learn from; at least 10"):
        train(made_samples(num=20), 0)
    samples = made_samples()
    with pytest.raises(BadRequest, match="are of one class"):
        train(samples._replace(goes_on=torch.ones_like(samples.goes_on)), 0)


def test_a_prompt_goes_on_where_another_request_follows():
    talk = [("assistant", "Welcome."), ("user", "a"), ("assistant", "b"), ("tool", "c"), ("assistant", "d"), ("assistant", "e")]
    found = prompts(Conversation("x", tuple(Message(*message) for message in talk)))
    assert [(len(prompt.messages), prompt.goes_on) for prompt in found] == [(2, True), (4, False), (5, False)]


def test_states_are_those_of_a_prefill(runtime, chat):
    """Nested prompts share a pass; each state must still be that of its own prompt, thoughts left out."""
    talk = [
        Message("user", "How deep?"), Message("assistant", "<think>hm</think>Nine."), Message("user", "Metres?"),
        Message("assistant", "Fathoms."), Message("user", "Thanks."), Message("assistant", "Not at all."),
    ]  # fmt: skip
    samples = StateReader(runtime.decoder, chat, 2048).samples(Conversation("x", tuple(talk)), 7)
    assert samples.goes_on.tolist() == [1, 1, 0] and samples.conversation.tolist() == [7, 7, 7]
    for state, prompt in zip(samples.hidden, prompts(Conversation("x", tuple(talk))), strict=True):
        ids = torch.from_numpy(chat.prompt(prompt.messages).ids)
        cache = runtime.pool.get("method", len(ids))
        alone = compute_rows(runtime.decoder, ids, 0, cache, Recorder(CPU))
        torch.testing.assert_close(state, alone[0], rtol=1e-4, atol=1e-4)
    assert not samples.hidden.is_inference()


def test_what_conversations_open_with_is_computed_once_and_changes_nothing(runtime, chat):
    def talk(opening, question):
        return Conversation("x", (Message("system", 12 * opening), Message("user", question), Message("assistant", "So be it.")))

    talks = [talk(*pair) for pair in (("Be kind.", "One?"), ("Be brief.", "Two?"), ("Be kind.", "One and a half?"), ("Be kind.", "One?"))]
    together, rows = StateReader(runtime.decoder, chat, 2048), []
    embed = runtime.decoder.embed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime.decoder, "embed", lambda ids: rows.append(len(ids)) or embed(ids))
        found = [together.samples(one, 0).hidden for one in talks]
    for one, hidden in zip(talks, found, strict=True):
        torch.testing.assert_close(hidden, StateReader(runtime.decoder, chat, 2048).samples(one, 0).hidden, rtol=1e-4, atol=1e-4)
    assert rows[2] < rows[0] / 2 and rows[3] < rows[0] / 2 < rows[1]
    assert StateReader(runtime.decoder, chat, 2048, max_turns=1).samples(talks[0], 0).num == 1


def test_prompts_that_are_too_long_are_left_out(runtime, chat):
    talk = tuple(Message(role, 20 * "word ") for role in ("user", "assistant") * 3)
    assert StateReader(runtime.decoder, chat, 300).samples(Conversation("x", talk), 0).num == 1
    assert StateReader(runtime.decoder, chat, 10).samples(Conversation("x", talk), 0).num == 0


def test_chitchat_is_read_off_the_package_without_running_it(tmp_path, monkeypatch):
    package = tmp_path / "chitchat_dataset"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    said = [[{"sender": who, "text": text, "timestamp": "x"} for text in texts] for who, texts in (("b", "ab"), ("a", "c"), ("b", "d"))]
    (package / "dataset.json").write_text(json.dumps({"one": {"messages": said, "start": "x"}, "alone": {"messages": said[:1]}}))
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = chitchat_conversations()
    assert found == ("chitchat one", (Message("user", "a\nb"), Message("assistant", "c"), Message("user", "d")))
    assert [prompt.goes_on for prompt in prompts(found)] == [True]
    (package / "dataset.json").write_text("[]")
    with pytest.raises(BadRequest, match=r"dataset\.json cannot be read"):
        list(chitchat_conversations())
    monkeypatch.undo()
    monkeypatch.setattr("engine.prefix.predictor_data.CHITCHAT_PACKAGE", "no_such_package")
    with pytest.raises(BadRequest, match="pip install chitchat-dataset"):
        list(chitchat_conversations())


def test_tellings_of_one_script_are_one_conversation():
    told = list(told_conversations(120, 0))
    assert 15 < len({conversation.name for conversation in told}) < 40
    labels = [prompt.goes_on for conversation in told for prompt in prompts(conversation)]
    assert 0.2 < np.mean(labels) < 0.8


def test_the_server_tells_the_policy_what_was_predicted(runtime):
    seen, made = [], made_predictor(runtime.model.spec.hidden_size)
    server = PrefixServer(
        runtime.decoder, POLICIES.create("saecache"), 20, predict=lambda hidden: seen.append(hidden) or made.probability(hidden)
    )
    prompt = typed(np.arange(40, 90), 1)
    for follow_up in (UNKNOWN, 0.25):
        with server.prefill(ServeRequest(prompt, 0.0, 0, follow_up=follow_up)) as running:
            served = server.finish(running)
            expected = made.probability(running.first.hidden) if follow_up == UNKNOWN else follow_up
        assert served.follow_up == expected
    assert len(seen) == 1 and seen[0].shape == (1, runtime.model.spec.hidden_size)


def conversation_file(path, num=60):
    """Writes conversations in which questions are followed up and thanks are not."""
    rows = []
    for i in range(num):
        talk = [{"from": "human", "value": f"What about {i * 37}?"}, {"from": "gpt", "value": f"It is {i}."}]
        rows.append({"conversations": [*talk, {"from": "human", "value": "Thanks."}, {"from": "gpt", "value": "Not at all."}]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_training_ends_in_a_predictor_with_its_card(runtime, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train_predictor, "load_runtime", lambda name, settings: runtime)
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    data = conversation_file(tmp_path / "talks.jsonl")
    assert train_predictor.main(["--data", str(data), "--n", "60", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)["card"]
    assert card["num_conversations"] == [36, 12, 12] and card["num_samples"] == [72, 24, 24] and card["model"] == "tiny-llama"
    # "Thanks." ends the prompt, so even a random model's state tells the classes apart.
    assert card["mcc"] > 0.6 and card["baseline_accuracy"] == 0.5 and card["predictions_per_s"] > 0
    assert find_predictor(runtime.model.spec, CPU, tmp_path).card.mcc == pytest.approx(card["mcc"], abs=1e-4)
    assert card["command"].endswith("--n 60 --json") and card["licences"] == "that of talks.jsonl is its owner's"
    for name in ("accuracy", "mcc", "brier", "calibration_error", "rule_mcc"):
        low, high = card["intervals"][name]
        assert low <= card[name] + 0.05 and high >= card[name] - 0.05
    low, high = card["intervals"]["brier_minus_rule"]
    assert low <= card["brier"] - card["rule_brier"] <= high
    assert train_predictor.main(["--data", str(data), "--n", "60"]) == 0
    told = capsys.readouterr().out
    assert "always the more frequent" in told and "Held out, the network is" in told


def test_a_network_that_is_no_better_than_the_rule_is_said_to_be_so():
    told = train_predictor.told_of(card_of(brier=0.15, rule_brier=0.14, intervals={"brier_minus_rule": (-0.02, 0.04)}))
    assert told == (
        "Held out, the network is not shown to be better than the logistic rule: its Brier score differs by +0.010 [-0.020, +0.040] over 2 "
        "conversations."
    )
    assert "is better than" in train_predictor.told_of(card_of(intervals={"brier_minus_rule": (-0.1, -0.02)}))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"text": "x"}, "bad.jsonl, line 1: holds neither 'messages' nor 'conversations'."),
        ({"messages": [{"role": "critic", "content": "x"}]}, "line 1: the role 'critic' is unknown; known ones are: system"),
    ],
)
def test_a_broken_line_is_named(tmp_path, row, sentence):
    (tmp_path / "bad.jsonl").write_text(json.dumps(row))
    with pytest.raises(BadRequest) as error:
        list(read_conversations(tmp_path / "bad.jsonl"))
    assert sentence in str(error.value)


def test_a_call_that_is_at_fault_ends_with_one_sentence(runtime, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train_predictor, "load_runtime", lambda name, settings: runtime)
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    assert train_predictor.main(["--data", str(tmp_path / "none.jsonl")]) == 2
    assert "give sessions, chitchat or the path" in capsys.readouterr().err
    for wrong in ("0", "5,6", "many", "-3"):
        assert train_predictor.main(["--n", wrong]) == 2
    assert "give a number of conversations of at least 1, or one for each of 1 sources" in capsys.readouterr().err
    (tmp_path / "empty.jsonl").write_text("\n")
    assert train_predictor.main(["--data", str(tmp_path / "empty.jsonl")]) == 2
    assert "holds no conversation" in capsys.readouterr().err
