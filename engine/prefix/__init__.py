"""The prefix cache: a tree of KV blocks, eviction policies, workloads and replay, which know nothing of torch, models or pictures; and
what serves a model through it: `pool`, `serve*`, `live`, `live_soak`, `predictor*`."""
