"""Pure functions from a run to a picture: one file per figure, `x_info(run)` and then `x_figure(info)`."""
