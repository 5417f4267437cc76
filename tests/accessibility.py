"""What axe-core finds on a page that keeps people out."""

from axe_playwright_python.sync_playwright import Axe

WORST = ("serious", "critical")
# Something that fades has other colours than it will have.
STILL = """() => Promise.all(document.getAnimations()
  .filter((one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity)
  .map((one) => one.finished.catch(() => null))).then(() => null)"""


# The rules whose outcome depends on the theme.
OF_COLOR = ("color-contrast", "link-in-text-block")


def hindrances(page, *selectors, rules=()):
    """Returns one line for each serious finding inside the selectors' nodes, the whole page without any; by all rules unless given."""
    page.evaluate(STILL)
    context = {"include": [[selector] for selector in selectors]} if selectors else None
    options = {"resultTypes": ["violations"], **({"runOnly": {"type": "rule", "values": list(rules)}} if rules else {})}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found if rule["impact"] in WORST for node in rule["nodes"]]
