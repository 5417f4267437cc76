"""The operations that selective recomputation needs, each with one signature and several versions.

Imports nothing of the rest of the project and, here, nothing at all: transformers looks for a module of
this name, so `import kernels` must stay free of side effects. `kernels.ops.load_ops` chooses a version.
"""
