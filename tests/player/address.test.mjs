import assert from "node:assert/strict";
import { test } from "node:test";
import { START } from "../../assets/player/core/state.js";
import { createAddress } from "../../assets/player/view/address.js";

test("a write that comes after another tab was chosen is left out, and a link names where the player stands", (t) => {
  const written = [], location = { search: "?other=1", pathname: "/", hash: "", href: "http://page/?other=1", hostname: "page" };
  globalThis.window = { location, history: { state: null, replaceState: (_, __, address) => written.push(address) } };
  globalThis.window.parent = globalThis.window;
  globalThis.document = { body: { dataset: { tab: "fuse" } } };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => { delete globalThis.window; delete globalThis.document; });
  const state = { ...START, tab: "evict", scenario: "load", time: 3 };
  const address = createAddress({ url: true, tab: "evict", view: "film" }, { state: () => state, seen: () => true });
  address.follow();
  t.mock.timers.tick(1000);
  assert.deepEqual(written, []);
  globalThis.document.body.dataset.tab = "evict";
  address.follow();
  t.mock.timers.tick(1000);
  assert.deepEqual(written, ["/?other=1&tab=evict&sc=load&t=3"]);
  assert.equal(address.link(), "http://page/?view=film&tab=evict&sc=load&t=3");
});
