// The list of runs: rows are made once and then only changed.

import { element, short } from "./words.js";

const SIGNS = { running: "●", finished: "✓", stopped: "■", damaged: "!" };
const rows = new Map();  // id -> elements
const NS = "http://www.w3.org/2000/svg";

export function matching(runs, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return [...runs.values()].filter((run) => {
    const text = `${run.name} ${run.game} ${run.state} seed${run.seed}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function drawList(list, found, { cursor, compared, colourOf }) {
  const wanted = new Set(found.map((run) => run.id));
  for (const [id, row] of rows) {
    if (!wanted.has(id)) { row.item.remove(); rows.delete(id); }
  }
  let place = list.firstElementChild;
  for (const run of found) {
    const row = rows.get(run.id) ?? make(run.id);
    fill(row, run);
    mark(row, run, run.id === cursor, compared.includes(run.id), colourOf(run.id));
    if (row.item === place) place = place.nextElementSibling;
    else list.insertBefore(row.item, place);
  }
  if (wanted.has(cursor)) list.setAttribute("aria-activedescendant", `run-${cursor}`);
  else list.removeAttribute("aria-activedescendant");
}

export function reveal(id) {
  rows.get(id)?.item.scrollIntoView({ block: "nearest" });
}

function make(id) {
  const line = document.createElementNS(NS, "polyline");
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", "0 0 66 24");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.append(line);
  const parts = {
    tick: element("span", "tick"), title: element("span", "title"), score: element("span", "score"),
    state: element("span", "state"), about: element("span", "about"), frames: element("span", "frames"), line,
  };
  parts.tick.setAttribute("aria-hidden", "true");
  parts.tick.title = "Compare (space)";
  const item = element("li", "", "", parts.tick, parts.title, svg, parts.score, parts.about, parts.frames);
  item.id = `run-${id}`;
  item.dataset.run = id;
  item.setAttribute("role", "option");
  const row = { item, said: "", ...parts };
  rows.set(id, row);
  return row;
}

function fill(row, run) {
  const said = JSON.stringify(run);
  if (row.said === said) return;
  row.said = said;
  const cut = run.name.lastIndexOf("/") + 1;
  row.title.replaceChildren(element("span", "folder", "", element("bdi", "", run.name.slice(0, cut))), element("b", "", run.name.slice(cut)));
  row.title.title = run.name;
  row.state.className = `state ${run.state}`;
  row.state.textContent = run.state === "finished" ? SIGNS.finished : `${SIGNS[run.state]} ${run.state}`;
  row.state.setAttribute("aria-label", run.state);
  row.state.title = run.says || run.state;
  row.about.replaceChildren(row.state, ` ${run.game || "unknown game"}`);
  row.score.textContent = short(run.score);
  row.frames.textContent = run.frames === null ? "" : short(run.frames);
  row.frames.title = "frames";
  row.line.setAttribute("points", points(run.spark));
}

function points(values) {
  if (values.length < 2) return "";
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  return values.map((v, i) => `${((66 * i) / (values.length - 1)).toFixed(1)},${(22 - (20 * (v - low)) / span).toFixed(1)}`).join(" ");
}

function mark(row, run, isCursor, isCompared, colour) {
  row.item.classList.toggle("cursor", isCursor);
  row.item.setAttribute("aria-selected", String(isCompared || isCursor));
  row.tick.textContent = isCompared ? "✓" : "";
  row.tick.style.backgroundColor = isCompared ? colour : "";
  row.tick.style.borderColor = isCompared ? colour : "";
}
