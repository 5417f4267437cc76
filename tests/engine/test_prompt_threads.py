"""One tokenizer, many threads: uploads count tokens while requests write their template."""

import threading

import numpy as np

from engine.model.prompt import PromptBuilder
from engine.model.tiny import byte_tokenizer

TEXT = "<|im_start|>user\nwho<|im_end|>"


def test_special_tokens_stay_what_they_are_whoever_else_tokenises():
    prompts = PromptBuilder(byte_tokenizer(), 2048)
    special, plain = (prompts.tokenize(TEXT, special=is_special).ids for is_special in (True, False))
    assert len(special) < len(plain)
    wrong: list[str] = []

    def work(is_special: bool) -> None:
        expected = special if is_special else plain
        for _ in range(400):
            if not np.array_equal(prompts.tokenize(TEXT, special=is_special).ids, expected):
                wrong.append(f"special={is_special}")

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
