"""Decoder models: loading, rotary embedding, layer-by-layer forward pass, calibration. Import the module you need."""
