"""axe-core on the player's site: views, themes, the talk, a phone."""

import pytest
from accessibility import hindrances
from player_site import visiting_player

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1920, 390])
@pytest.mark.parametrize(
    "query", ["?theme=light", "?theme=dark", "?theme=light&present=1&scene=3", "?tab=evict&theme=light", "?tab=evict&theme=dark"]
)
def test_nothing_serious_on_the_site(browser, site, query, width):
    with visiting_player(browser, site, query, width=width) as visit:
        assert hindrances(visit.page) == []
