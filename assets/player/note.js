// One line of text.
root.setAttribute("aria-live", "polite");
play(() => show(node("p", "fs-note", unpack() || "")));
