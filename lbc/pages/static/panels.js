// What surrounds the charts: the head of a run, compared runs, findings, the film.

import { ago, distinct, element, lasting, short, withCode } from "./words.js";

const SIGNS = { red: ["×", "bad"], amber: ["!", "look"], green: ["✓", "good"], grey: ["–", "unknown"] };
const ORDER = ["red", "amber", "green", "grey"];
const place = (id) => document.getElementById(id);

let said = "";

export function head(run) {
  const now = run ? JSON.stringify([run, ago(run.changed)]) : "";
  if (now === said && now) return;
  said = now;
  place("name").textContent = run ? run.name : "No run chosen";
  const facts = place("facts");
  if (!run) { facts.textContent = ""; place("tiles").replaceChildren(); complain(null); return; }
  const budget = run.budget ? ` of ${short(run.budget)}` : "";
  facts.replaceChildren(element("span", `state ${run.state}`, run.state),
    ` · ${run.game || "unknown game"}${run.seed === null ? "" : ` · seed ${run.seed}`}${run.changed ? ` · last report ${ago(run.changed)}` : ""}`);
  const tiles = [["score", short(run.score)], ["best episode", short(run.best)], ["frames", `${short(run.frames)}${budget}`],
    ["frames/s", short(run.speed)], ["trained for", lasting(run.seconds)]];
  place("tiles").replaceChildren(...tiles.map(([name, value]) => element("div", "", "", element("dt", "", name), element("dd", "", value))));
  complain(run);
}

function complain(run) {
  const notice = place("complaint");
  notice.hidden = !run?.says;
  notice.className = `notice ${run?.state ?? ""}`;
  if (run?.says) notice.replaceChildren(...withCode(run.says));
}

export function chips(series, remove) {
  const box = place("chips");
  box.hidden = series.length < 2;
  const names = distinct(series.map((one) => one.label));
  box.replaceChildren(...series.map((one, i) => {
    const chip = element("button", "chip", "", line(one), element("span", "", names[i]), element("b", "", "×"));
    chip.setAttribute("aria-label", `Compare ${one.label} no longer`);
    chip.onclick = () => remove(one.id);
    return chip;
  }));
}

function line({ colour, dash }) {
  const NS = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(NS, "svg"), stroke = document.createElementNS(NS, "line");
  const set = { x1: 0, x2: 24, y1: 2, y2: 2, stroke: colour, "stroke-width": 3,
    "stroke-dasharray": { solid: "", dot: "3 3", dash: "7 4", dashdot: "7 3 2 3" }[dash] ?? "10 3 3 3" };
  for (const [name, value] of Object.entries(set)) stroke.setAttribute(name, value);
  svg.append(stroke);
  return svg;
}

export function findings(found) {
  const counts = ORDER.map((light) => [light, found.filter((one) => one.light === light).length]);
  place("verdict").textContent = counts.filter(([, n]) => n).map(([light, n]) => `${n} ${light}`).join(", ");
  const sorted = [...found].sort((a, b) => ORDER.indexOf(a.light) - ORDER.indexOf(b.light));
  place("findings").replaceChildren(...sorted.map((one) => {
    const [sign, word] = SIGNS[one.light];
    const light = element("span", `light ${one.light}`, sign);
    light.setAttribute("role", "img");
    light.setAttribute("aria-label", `${one.light}: ${word}`);
    const item = element("li", "", "", light, element("b", "", one.name), element("p", "", one.says));
    if (one.advice) item.append(element("p", "advice", one.advice));
    return item;
  }));
}

const folded = (image) => element("details", "", "", element("summary", "", "Show the film"), image);

// The picture changes only where there is a newer one, so that it does not begin anew.
export function film(run, found) {
  const box = place("film"), note = place("film-note");
  note.textContent = !found ? "" : found.making ? "filming the newest checkpoint …" : found.version ? "newest checkpoint" : "";
  const key = found?.version ? `${run.id} ${found.version}` : "";
  if (box.dataset.key === key && key) return;
  box.dataset.key = key;
  if (key) {
    const image = element("img");
    image.src = `api/runs/${run.id}/film.gif?${encodeURIComponent(found.version)}`;
    image.alt = "An episode of the newest checkpoint, with every policy's opinion beside the game";
    box.replaceChildren(matchMedia("(prefers-reduced-motion: reduce)").matches ? folded(image) : image);
  } else {
    const says = found?.says || (found?.making ? "An episode is being filmed; that takes some seconds." : "A film follows when the one before it is done.");
    box.replaceChildren(element("p", "empty", "", ...withCode(says)));
  }
}
