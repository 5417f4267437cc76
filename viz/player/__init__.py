"""From runs to what the player plays, and to the pages that hold it."""
