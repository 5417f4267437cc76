"""axe-core on the player's site: views, themes, the talk, a phone."""

import pytest
from accessibility import hindrances
from player_site import visiting_player

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1920, 390])
def test_nothing_serious_on_the_site(browser, site, width):
    with visiting_player(browser, site, "theme=light", width=width) as visit:
        for scenario in ("servo-manual", "tool_use"):
            visit.show(scenario)
            for theme in ("light", "dark"):
                visit.do(type="theme", theme=theme)
                assert hindrances(visit.page) == [], (scenario, theme)
    with visiting_player(browser, site, "theme=light&present=1&scene=3", width=width) as visit:
        assert hindrances(visit.page) == []
