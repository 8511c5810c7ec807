// Puts the page together: the summary at once, everything large after the first paint.

import {h, append, replaceChildren, count, plural} from "./dom.js";
import {head, part} from "./data.js";
import {startTheme, toggleTheme} from "./theme.js";
import {summary, runLine} from "./summary.js";
import {Collectives} from "./collectives.js";
import {Rewrites} from "./rewrites.js";
import {nestView} from "./nests.js";
import {trafficView} from "./traffic.js";
import {Gantt} from "./gantt.js";
import {stepView, exposedView} from "./step.js";
import {timingView} from "./timing.js";

const KEYS = [["/", "search"], ["1 … 7", "go to a section"], ["J, K", "next, previous rewrite"], ["↑ ↓", "move in a list or picture that has the focus"],
              ["T", "light or dark"], ["Esc", "clear the search, close this"], ["?", "this help"]];
const facts = head();
const content = document.getElementById("content");
const search = document.getElementById("search");
const sections = [];
let collectives = null;
let rewrites = null;

function section(id, title, amount, ...children) {
  const element = h("section", {id, "aria-labelledby": `${id}-title`}, h("h2", {id: `${id}-title`, tabindex: "-1"}, title,
    amount === null ? null : [" ", h("span", {class: "amount"}, amount)]), children);
  content.append(element);
  sections.push({id, title, amount, element});
}

function go(id) {
  const found = sections.find((each) => each.id === id);
  if (!found) return;
  found.element.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
  found.element.querySelector("h2").focus({preventScroll: true});
}

function drawNav() {
  replaceChildren(document.getElementById("nav"), h("ol", null, sections.map(({id, title, amount}, i) => h("li", null,
    h("a", {href: `#${id}`, onclick: (event) => { event.preventDefault(); go(id); }}, h("span", {class: "nav-key", "aria-hidden": "true"}, i + 1), h("span", {class: "nav-title"}, title),
      amount === null ? null : [" ", h("span", {class: "nav-amount"}, amount)])))));
  const watch = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      document.querySelector(`#nav a[href="#${target.id}"]`)?.classList.toggle("here", isIntersecting);
    }
  }, {rootMargin: "-30% 0px -60% 0px"});
  sections.forEach(({element}) => watch.observe(element));
}

function openSource(source) {
  runSearch(source);
  go("collectives");
}

function openFate(fate) {
  collectives?.setFate(fate);
  go("collectives");
}

function openRewrites(source) {
  runSearch(source);
  go("rewrites");
}

function openRule(rule) {
  rewrites?.showRule(rule);
  go("rewrites");
}

function runSearch(text) {
  search.value = text;
  const query = text.trim().toLowerCase();
  const found = [collectives && plural(collectives.setQuery(query), "collective"), rewrites && plural(rewrites.setQuery(query), "rewrite")].filter(Boolean);
  document.getElementById("search-count").textContent = query ? found.join(", ") || "nothing to search" : "";
}

function showKeys() {
  const dialog = document.getElementById("keys");
  replaceChildren(dialog, h("h2", {id: "keys-title"}, "Keys"), h("dl", null, KEYS.map(([key, what]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, what)))),
                  h("form", {method: "dialog"}, h("button", {class: "chip"}, "Close")));
  dialog.showModal();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && document.activeElement === search) {
    runSearch("");
    search.blur();
    return;
  }
  if (event.target.closest?.("input, select, textarea, dialog")) return;
  const actions = {"/": () => { search.focus(); search.select(); }, t: toggleTheme, "?": showKeys, j: () => rewrites?.list.step(1), k: () => rewrites?.list.step(-1)};
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key] ?? (/^[1-9]$/.test(event.key) ? () => go(sections[Number(event.key) - 1]?.id) : null);
  if (!action) return;
  event.preventDefault();
  action();
}

function noteBox(notes) {
  if (!notes.length) return null;
  return h("aside", {class: "notes", "aria-label": "Notes"}, h("ul", null, notes.map((note) => h("li", null, note))));
}

function drawHead() {
  const name = facts.run?.input || "a run";
  document.getElementById("bar-title").textContent = name;
  append(content, [h("header", {class: "title"}, h("h1", null, name), h("p", {class: "run"}, runLine(facts))), noteBox(facts.notes)]);
  if (facts.decision) section("decision", "Saving", null, document.getElementById("decision-html").content);
  if (facts.sides.some(Boolean)) {
    section("summary", facts.decision ? "The module" : "Summary", null,
            facts.decision ? h("p", {class: "lead"}, "The module’s own counts, before XLA compiles it: XLA merges, splits and overlaps calls.") : null, summary(facts, openFate));
  }
}

async function drawParts() {
  const load = async (name) => {
    try {
      return await part(name);
    } catch (error) {
      content.append(noteBox([`The part “${name}” of this page is damaged (${error.message}).`]));
      return null;
    }
  };
  const sources = await load("sources");
  const listed = await load("collectives");
  if (listed) {
    collectives = new Collectives(listed, sources, openRewrites);
    section("collectives", "Collectives", count(listed.fates.length), h("p", {class: "lead"}, "Each collective, what became of it, and why."), collectives.element,
            facts.missed_left_out ? h("p", {class: "muted"}, `${count(facts.missed_left_out)} more remarks on patterns that are not all there were left out of the trace.`) : null);
  }
  const rewritten = await load("rewrites");
  if (rewritten) {
    rewrites = new Rewrites(rewritten, facts.rules, sources);
    section("rewrites", "Rewrites", count(rewritten.rows.length), h("p", {class: "lead"}, "The ops each rewrite changed, before and after, and the rule that did it."), rewrites.element);
  }
  const nests = await load("nests");
  if (nests) section("nests", "Loops", null, h("p", {class: "lead"}, "Where collectives live. Bars are executed bytes."), nestView(nests, openSource));
  const traffic = await load("traffic");
  if (traffic) section("traffic", "Traffic", null, h("p", {class: "lead"}, "Who sends how much to whom."), trafficView(traffic));
  const streams = await load("streams");
  if (streams) {
    section("streams", "Step", null, h("p", {class: "lead"}, "The schedule XLA made of the step, simulated: what runs when on each stream of one GPU. Point at a span to see what runs concurrently with it."),
            streams.map(({side, timeline}) => [h("h3", null, side === "before" ? "Before" : "After"), new Gantt(timeline).element]));
  }
  const step = await load("step");
  if (step) section("step", "Step", null, stepView(step));
  const timeline = await load("timeline");
  if (timeline) section("pipeline", timeline.title ?? "Pipeline", null, h("p", {class: "lead"}, timeline.lead ?? "One step of the pipeline: tasks, links and memory."), new Gantt(timeline).element);
  if (step && step.collectives.length) section("exposed", "Exposed", count(step.collectives.length), exposedView(step));
  if (facts.timing && facts.timing.steps.length) section("timing", "Pass times", null, timingView(facts.timing, openRule));
  drawNav();
}

startTheme();
drawHead();
drawNav();
document.getElementById("help").addEventListener("click", showKeys);
search.addEventListener("input", () => runSearch(search.value));
document.addEventListener("keydown", onKey);
requestAnimationFrame(() => setTimeout(async () => {
  await drawParts();
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
}));
