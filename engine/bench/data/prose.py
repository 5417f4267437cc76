"""Neutral prose to hide facts in: ten subjects of a small town, no names, no numbers, no sentence twice in a passage."""

import random
from collections.abc import Iterator

_FILL = {
    "when": (
        *("In spring", "Late in the year", "Before breakfast", "On market days", "After the first frost", "Towards evening"),
        *("In the dry weeks", "Once the rain has passed", "Around noon", "During the holidays", "Early in the week", "When the wind turns"),
    ),
    "who": (
        *("the caretaker", "a retired teacher", "the younger apprentice", "a neighbour", "the night porter", "a visiting surveyor"),
        *("the eldest of the crew", "a clerk from the council", "a volunteer", "a family of weavers", "the postman", "the new tenant"),
    ),
    "where": (
        *(
            "behind the chapel",
            "along the towpath",
            "near the old mill",
            "at the foot of the hill",
            "by the north gate",
            "beside the square",
        ),
        *("under the railway arch", "across the footbridge", "next to the bakery", "at the bend of the river", "beyond the allotments"),
    ),
    "how": (
        *("without much hurry", "with unusual care", "in good humour", "by long habit", "a little at a time", "as the custom demands"),
        *("to everyone's relief", "in silence", "with borrowed tools", "for no pay at all", "as quickly as the light allows"),
    ),
    "what": (
        *("a basket of kindling", "a coil of rope", "two folding chairs", "an enamel jug", "a bundle of letters", "a tin of varnish"),
        *("a wooden ladder", "a sack of meal", "an oil lamp", "a roll of canvas", "a pair of shears", "a small brass bell"),
    ),
    "look": (
        *("pale", "worn smooth", "freshly painted", "covered in moss", "slightly crooked", "dark with age", "clean and dry", "half hidden"),
    ),
}

_SUBJECTS = {
    "The orchard": (
        "{when} the orchard is quiet, and {who} can be found pruning the lower branches {how}.",
        "The oldest trees stand {where}, their trunks {look}, and nobody remembers who planted them.",
        "Windfalls are gathered into crates and carried to the press, which is kept {where}.",
        "A path mown between the rows lets {who} pass with {what} and not disturb the hives.",
        "Blossom comes late on the shaded side, so the picking there begins well after the rest is done.",
        "The fence was mended {how}, and its posts are still {look}.",
        "{when} the grass is left to grow, because {who} insists that the bees prefer it so.",
        "Someone hung {what} from a branch years ago, and it has become a landmark of its own.",
        "Cider from the last season rests in the cellar, where the air is cool and smells of straw.",
        "Children are allowed to climb the trees {where}, though not the ones that carry nets.",
        "The grafting knife is passed from hand to hand and sharpened {how} before the work begins.",
        "In a poor year {who} will share what there is, and nothing is sold outside the parish.",
    ),
    "The weather": (
        "{when} fog settles {where} and lifts only when the sun has warmed the roofs.",
        "The gauge on the wall is {look}, yet {who} still reads it every morning {how}.",
        "Long spells without rain are rare, but people prepare for them by filling barrels {where}.",
        "Storms arrive from the west and are usually over before the shutters have all been closed.",
        "{when} the light turns yellow, and {who} takes it as a sign that snow is near.",
        "Wind from the east brings dust, so washing is dried indoors and {what} is kept by the door.",
        "The almanac on the kitchen shelf is trusted more than it deserves, as most would admit.",
        "Hail once broke the glass of the conservatory {where}, which was then left open for a season.",
        "A clear night means frost in the hollow, and tender plants are covered {how}.",
        "Those who walk to work carry {what} in case the weather should change on the way home.",
        "The clouds over the ridge are watched {how}, for they decide what can be done that day.",
        "After a wet summer the paths stay {look} until the leaves begin to fall.",
    ),
    "The workshop": (
        "The workshop {where} opens whenever {who} finds the key, which hangs {how} on a nail.",
        "Its benches are {look}, and every drawer has a label written in a careful hand.",
        "{when} the stove is lit first, so that the glue will set before the day is out.",
        "Broken chairs are left {where} and are repaired {how} in the order in which they came.",
        "A shelf holds {what}, kept in case somebody comes to ask for it.",
        "The lathe was bought second-hand and hums in a way that {who} finds soothing.",
        "Shavings are swept into sacks and given to the stables, where they make good bedding.",
        "Visitors may look on, but they are asked to stand clear of the belt and to speak softly.",
        "Tools are borrowed {how} and returned with a note that says what they were used for.",
        "{when} the windows are washed, since good light matters more than warmth.",
        "The first thing that is taught here is to measure again before cutting anything.",
        "An unfinished boat rests on trestles {where}, its ribs {look}, waiting for better days.",
    ),
    "The bakery": (
        "{when} the ovens are already hot, and the smell of bread reaches the houses {where}.",
        "Dough is mixed in a trough that is {look} and has outlasted several owners.",
        "The shop bell rings {how}, and {who} is usually the first to be served.",
        "Rye loaves are baked at the start of the week and keep well when wrapped in linen.",
        "Flour comes by cart and is carried up the stairs {how} by {who}.",
        "What is not sold by evening goes to the kitchen {where}, and nobody makes a fuss about it.",
        "A tray of sweet rolls is set aside for those who work through the night.",
        "The recipe for the dark loaf is not written down, though {who} claims to know it.",
        "{when} the queue reaches the corner, and people exchange news while they wait.",
        "Behind the counter stands {what}, which customers have learned not to ask about.",
        "The chimney is swept twice a year, and the street is warned beforehand with a note.",
        "In the back room the tiles are {look}, and the floor is scrubbed before closing.",
    ),
    "The river": (
        "{when} the river is low enough to cross on the stones {where}.",
        "Barges no longer stop here, yet the mooring rings remain, {look} and firmly fixed.",
        "The ferryman's hut is used by {who} to store {what} over the winter.",
        "Willows lean over the bank and are cut back {how} so that the current stays free.",
        "A heron stands {where} most mornings and takes no notice of those who pass.",
        "Flood marks on the wall show how far the water once came into the lower street.",
        "Fishing is permitted from the bank, provided that {who} has been told.",
        "{when} the ice forms along the edges first, and the middle of the stream stays open.",
        "The bridge was built {how}, and its railing has since become {look}.",
        "Swimming is safest {where}, where the bed is sandy and the water slow.",
        "The mill race is cleared of branches every autumn, a task that falls to {who}.",
        "From the upper meadow the whole valley can be seen, with the river winding through it.",
    ),
    "The library": (
        "The reading room {where} is heated {how} and stays open until the lamps are lit.",
        "{when} {who} returns a pile of novels and borrows as many again.",
        "Shelves along the far wall are {look}, and the lowest one holds atlases that nobody may take home.",
        "Torn pages are mended with paper so thin that the print can still be read through it.",
        "A ledger by the door records who borrowed {what}, for the library lends more than books.",
        "New arrivals are placed on the round table, where they are leafed through {how}.",
        "The clock was stopped during the repairs and has never kept good time since.",
        "Talking is allowed in the hallway, and {who} makes generous use of that rule.",
        "{when} school classes come to hear a story and leave the chairs in disorder.",
        "The catalogue drawers are {look}, yet they are consulted more often than the machine.",
        "A window seat {where} is the most popular place, and the cushions are renewed every year.",
        "Donations are welcome, as long as {who} has looked them over for damp and mice.",
    ),
    "The railway": (
        "{when} the first train passes {where} and wakes those who sleep lightly.",
        "The platform is swept {how}, and its benches are {look}.",
        "Parcels are handed over the counter by {who}, who knows most of the recipients.",
        "A siding behind the goods shed holds carriages that are waiting for new wheels.",
        "Travellers with time to spare walk {where} and come back before the signal changes.",
        "The waiting room has {what} in one corner, left there and never claimed.",
        "Tickets are still printed on stiff card and clipped {how} by the guard.",
        "Geraniums grow in tubs along the fence, a habit begun by {who}.",
        "{when} the line is closed for works, and a bus stands in for the train.",
        "The crossing keeper's house is {look} and has the best view of the valley.",
        "Nobody runs for the train here, since the driver waits for those whom he sees coming.",
        "Old timetables are kept in a box, and comparing them is a favourite pastime.",
    ),
    "The market": (
        "{when} stalls go up {where}, and the first customers arrive before all is unpacked.",
        "Cheese is cut to order, wrapped {how} and weighed on scales that are {look}.",
        "The potter keeps a corner for {who}, whose cups are sold without any profit.",
        "Bargaining is frowned upon in the morning and expected in the last hour.",
        "A canvas roof is stretched between the poles and held down with {what}.",
        "Egg boxes are to be brought back, and those who forget are reminded {how}.",
        "The musician plays {where}, where the echo makes one fiddle sound like several.",
        "Fruit that is bruised is put into a basket at the side, free for whoever wants it.",
        "{when} {who} sets up a table of seedlings and gives advice along with them.",
        "The pump in the middle is {look}, and its water is said to be good for tea.",
        "Regular customers have a hook with their name on it, where their bag is left ready.",
        "When the bell rings, the square is cleared {how}, and only some straw remains.",
    ),
    "The school": (
        "The school yard {where} is small, so games are played in turns and {how}.",
        "{when} the windows are opened wide, and the sound of reading aloud drifts over the wall.",
        "Desks that are {look} have been passed down, with initials carved under the lids.",
        "The garden is looked after by {who}, with help from the lowest form.",
        "A map of the county hangs by the stove, and its colours have faded unevenly.",
        "Lunch is carried over from the kitchen {where} in pans wrapped in cloth.",
        "On the last day of term each child takes home {what} and a drawing.",
        "The piano is tuned {how}, although two of its keys remain silent.",
        "{when} lessons are held outside, and {who} explains the names of the clouds.",
        "Lost gloves are pinned to a line in the corridor until somebody recognises them.",
        "The headmistress writes her letters by hand and expects an answer of the same kind.",
        "Prizes are given for neatness as well as for learning, which some think unfair.",
    ),
    "The theatre": (
        "The company rehearses {where}, since the stage is needed for the choir.",
        "{when} the doors open, and {who} shows people to seats that are {look}.",
        "Costumes are sewn from curtains and let out {how} whenever the cast changes.",
        "The painted forest has served for many plays and is touched up before each.",
        "A trapdoor in the floor sticks in damp weather and is then held open with {what}.",
        "Programmes are printed on one sheet, folded {how} and sold for the roof fund.",
        "The prompter sits {where} and is rarely needed, except in the comedies.",
        "In the interval tea is served by {who}, and the queue is part of the evening.",
        "{when} the young group performs, and parents fill the balcony long before the start.",
        "The curtain is heavy and {look}, and it takes two people to draw it evenly.",
        "Critics come seldom, and what they write is pinned up whether it is kind or not.",
        "After the last performance the scenery is taken apart and stored beneath the stairs.",
    ),
}

SUBJECTS = tuple(_SUBJECTS)


def sentences(rng: random.Random, subject: str) -> Iterator[str]:
    """Yields sentences about a subject in random order, its own first and then, one by one, those of other subjects."""
    others = [name for name in SUBJECTS if name != subject]
    for name in (subject, *rng.sample(others, len(others))):
        for template in rng.sample(_SUBJECTS[name], len(_SUBJECTS[name])):
            filled = template.format(**{slot: rng.choice(choices) for slot, choices in _FILL.items()})
            yield filled[0].upper() + filled[1:]
