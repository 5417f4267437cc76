"""QCFuse and SAECache inside an SGLang server: a plugin that SGLang finds by its entry point, without a patch.

Only SGLang's own processes import this package; the app talks to the server by HTTP (`engine.serving.sglang_client`).
"""
