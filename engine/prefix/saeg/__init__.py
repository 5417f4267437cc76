"""Our own policy SAE-G: classes of blocks, their reuse-time curves with censoring, and the hit density the curves promise."""
