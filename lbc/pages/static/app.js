// The page: which runs are shown and how, what keys do, and when to ask for news.

import * as charts from "./charts.js";
import * as data from "./data.js";
import { drawList, matching, reveal } from "./list.js";
import * as panels from "./panels.js";
import { distinct, withCode } from "./words.js";

const EVERY = 2000, DETAILS_EVERY = 8000, FILM_EVERY = 5000;  // milliseconds
const $ = (id) => document.getElementById(id);
const view = { axis: "frames", smoothing: 0 };
const state = { cursor: null, compared: [], slots: new Map(), found: [], details: null, detailsOf: "", detailsAt: 0, filmAt: 0, filmVisible: false, round: 0, drawn: "" };

const remember = (key, value) => { try { localStorage.setItem(`lbc-${key}`, value); } catch { /* forbidden */ } };
const recall = (key) => { try { return localStorage.getItem(`lbc-${key}`); } catch { return null; } };

// ---- what is shown

const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const palette = () => data.colours[isDark() ? "dark" : "light"];
const shown = () => [...new Set([...state.compared, state.cursor])].filter((id) => data.runs.has(id));

// A run keeps its colour as long as it is shown.
function slot(id) {
  const ids = shown();
  for (const old of state.slots.keys()) if (!ids.includes(old)) state.slots.delete(old);
  if (!state.slots.has(id)) {
    const taken = new Set(state.slots.values());
    let free = 0;
    while (taken.has(free)) free += 1;
    state.slots.set(id, free);
  }
  return state.slots.get(id);
}
const colourOf = (id) => palette()[slot(id) % palette().length];

function series() {
  const ids = shown(), names = distinct(ids.map((id) => data.runs.get(id).name));
  return ids.map((id, i) => ({ id, label: data.runs.get(id).name, short: names[i], columns: data.columnsOf(id), colour: colourOf(id),
    dash: ids.length > 1 ? charts.DASHES[slot(id) % charts.DASHES.length] : "solid" }));
}

function drawRuns() {
  state.found = matching(data.runs, $("search").value);
  drawList($("runs"), state.found, { cursor: state.cursor, compared: state.compared.length ? shown() : [], colourOf });
  const tally = {};
  for (const run of data.runs.values()) tally[run.state] = (tally[run.state] ?? 0) + 1;
  const all = ["running", "finished", "stopped", "damaged"].filter((s) => tally[s]).map((s) => `${tally[s]} ${s}`).join(", ");
  $("counts").textContent = state.found.length < data.runs.size ? `${state.found.length} of ${data.runs.size} runs` : all;
  const nothing = $("nothing");
  nothing.hidden = state.found.length > 0;
  if (!nothing.hidden) {
    nothing.replaceChildren(...withCode(data.runs.size ? "No run matches this search; `Esc` clears it."
      : `No runs in ${data.folders} yet. Start one, say \`lbc train catch\`; it appears here within seconds.`));
  }
}

async function drawCharts() {
  if (!window.Plotly || !data.runs.size) return;
  const all = series(), run = data.runs.get(state.cursor), columns = data.columnsOf(state.cursor);
  panels.chips(all, remove);
  if (!run || !columns) return;
  const named = all.map((one) => ({ ...one, label: one.short }));
  const wait = run.state === "damaged" ? "There is nothing to draw." : "No episode has ended yet; the curve begins with the first score.";
  const figures = [
    () => charts.lines("score", named, "score_mean", view, wait),
    () => charts.lines("entropy", named, "behavior_entropy", view, "No entropy has been reported.", { zero: true }),
    () => charts.bands("responsibility", columns, "responsibility/", view, data.colours.policies, "No responsibility has been reported.", (i) => `policy ${Number(i) + 1}`),
    () => charts.lines("lag", named, "policy_lag", view, "No lag has been reported yet.", { zero: true }),
    drawRegions,
    () => charts.lines("speed", named, "frames_per_second", view, "No speed has been reported.", { zero: true }),
    () => charts.bands("time", columns, "time/", view, data.colours.policies, "No times have been reported.", (name) => name),
    () => ($("losses").open ? charts.losses("loss", columns, view, data.colours.policies, "No losses have been reported yet.") : null),
  ];
  const round = (state.round += 1);
  for (const figure of figures) {
    await figure();
    await new Promise((done) => { setTimeout(done); });  // keys come before the next figure
    if (round !== state.round) return;  // somebody has begun anew
  }
}

function drawRegions() {
  if (state.detailsOf !== state.cursor || !state.details) return null;
  return charts.heatMaps("regions", state.details.regions, view, "No choices have been reported: no episode has begun, or nothing is chosen.");
}

function drawHead() {
  panels.head(data.runs.get(state.cursor));
  const run = data.runs.get(state.cursor);
  document.title = run ? `${run.name} – lbc` : "lbc dashboard";
}

// ---- choosing

function go(id, { quiet = false } = {}) {
  if (!id || id === state.cursor) return;
  state.cursor = id;
  state.details = null;
  charts.unzoom();
  drawHead();
  drawRuns();
  if (!quiet) reveal(id);
  tell();
  news();
}

function move(step) {
  const ids = state.found.map((run) => run.id), at = ids.indexOf(state.cursor);
  go(ids[Math.max(0, Math.min(ids.length - 1, at < 0 ? 0 : at + step))]);
}

function toggle(id) {
  if (!id) return;
  if (state.compared.includes(id)) state.compared = state.compared.filter((one) => one !== id);
  else if (state.compared.length < palette().length - 1) state.compared = [...state.compared, id];
  else return say(`At most ${palette().length - 1} runs can be told apart; take one away first.`);
  drawRuns();
  tell();
  news();
}

function remove(id) {
  state.compared = state.compared.filter((one) => one !== id);
  if (id === state.cursor && state.compared.length) return go(state.compared[0]);
  drawRuns();
  tell();
  return news();
}

function say(sentence) {
  const notice = $("complaint");
  notice.hidden = false;
  notice.className = "notice";
  notice.textContent = sentence;
}

// The address says what is shown, so that it survives a reload and can be sent on.
function tell() {
  const hash = new URLSearchParams({ run: state.cursor });
  if (state.compared.length) hash.set("with", state.compared.join(","));
  history.replaceState(null, "", `#${hash}`);
}

function listen() {
  const hash = new URLSearchParams(location.hash.slice(1));
  if (data.runs.has(hash.get("run"))) state.cursor = hash.get("run");
  state.compared = (hash.get("with") ?? "").split(",").filter((id) => data.runs.has(id));
}

// ---- news

let asking = false, again = false;

async function news() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    do {
      again = false;
      if (await data.refreshRuns()) {
        if (!data.runs.has(state.cursor)) state.cursor = data.runs.keys().next().value ?? null;
        state.compared = state.compared.filter((id) => data.runs.has(id));
        drawRuns();
      }
      drawHead();
      const changed = await data.refreshCurves(shown());
      if (!window.Plotly) charts.sketch("score", series(), "score_mean");
      await charts.load();
      const now = shown().join();
      if (changed || now !== state.drawn) await drawCharts();
      state.drawn = now;
      if (await refreshDetails(changed)) await drawRegions();
    } while (again);
    $("lost").hidden = true;
  } catch (error) {
    if (error.status === undefined) throw error;
    $("lost").hidden = false;
  } finally {
    asking = false;
  }
  await refreshFilm();
}

async function refreshDetails(changed) {
  const id = state.cursor;
  if (!id || (state.details && state.detailsOf === id && (!changed || Date.now() - state.detailsAt < DETAILS_EVERY))) return false;
  try {
    const found = await data.details(id);
    if (id !== state.cursor) return false;
    Object.assign(state, { details: found, detailsOf: id, detailsAt: Date.now() });
    panels.findings(found.findings);
    return true;
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

async function refreshFilm() {
  const run = data.runs.get(state.cursor);
  if (!run || !state.filmVisible || (state.filmOf === run.id && Date.now() - state.filmAt < FILM_EVERY)) return;
  Object.assign(state, { filmAt: Date.now(), filmOf: run.id });
  try {
    const found = await data.film(run.id);
    if (run.id === state.cursor) panels.film(run, found);
  } catch (error) {
    if (error.status === undefined) throw error;  // else the next round says so
  }
}

// ---- hands

function setAxis(axis) {
  view.axis = axis;
  remember("axis", axis);
  document.querySelector(`#axis input[value=${axis}]`).checked = true;
  charts.unzoom();
}

function setSmoothing(value) {
  view.smoothing = Math.max(0, Math.min(10, Number(value) || 0));
  remember("smoothing", view.smoothing);
  $("smoothing").value = view.smoothing;
  $("smoothing").setAttribute("aria-valuetext", view.smoothing ? `${view.smoothing} of 10` : "none");
  drawCharts();
}

const THEMES = { system: "◐", light: "☀", dark: "☾" };

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember("theme", theme);
  $("theme").textContent = THEMES[theme];
  $("theme").setAttribute("aria-label", `Theme: ${theme}`);
  if (data.runs.size) { drawRuns(); drawCharts(); }
}

function nextTheme() {
  const names = Object.keys(THEMES), now = document.documentElement.dataset.theme ?? "system";
  const wanted = names[(names.indexOf(now) + 1) % names.length];
  setTheme(wanted);
}

const KEYS = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  Home: () => move(-Infinity), End: () => move(Infinity), " ": () => toggle(state.cursor),
  c: () => { state.compared = []; drawRuns(); tell(); news(); },
  "/": () => $("search").focus(), x: () => setAxis(view.axis === "frames" ? "minutes" : "frames"),
  s: () => setSmoothing(view.smoothing + 1), S: () => setSmoothing(view.smoothing - 1),
  r: charts.unzoom, l: () => { $("losses").open = !$("losses").open; }, t: nextTheme, "?": () => $("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const target = event.target;
  if (target.id === "search") {
    if (event.key === "Escape") { target.value = ""; drawRuns(); $("runs").focus(); }
    if (event.key === "Enter" || event.key === "ArrowDown") { $("runs").focus(); if (!state.found.some((run) => run.id === state.cursor)) move(0); event.preventDefault(); }
    return;
  }
  const inList = target === document.body || $("runs").contains(target);
  const needsList = event.key.length > 1 || event.key === " ";  // elsewhere these scroll, press and slide
  if (needsList && !inList) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});

$("runs").addEventListener("click", (event) => {
  const id = event.target.closest("li")?.dataset.run;
  if (event.target.closest(".tick") || event.ctrlKey || event.metaKey) toggle(id);
  else go(id, { quiet: true });
});
$("search").addEventListener("input", drawRuns);
$("axis").addEventListener("change", (event) => setAxis(event.target.value));
$("smoothing").addEventListener("input", (event) => setSmoothing(event.target.value));
$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => $("keys").showModal());
$("unzoom").addEventListener("click", charts.unzoom);
$("losses").addEventListener("toggle", () => drawCharts());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawRuns(); drawCharts(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) news(); });
charts.onZoom((byHand) => { $("unzoom").hidden = !charts.isZoomed(); if (!byHand) drawCharts(); });
new IntersectionObserver(([entry]) => { state.filmVisible = entry.isIntersecting; refreshFilm(); }).observe($("filming"));

// ---- begin

setTheme(recall("theme") in THEMES ? recall("theme") : "system");
view.axis = recall("axis") === "minutes" ? "minutes" : "frames";
document.querySelector(`#axis input[value=${view.axis}]`).checked = true;
view.smoothing = Number(recall("smoothing")) || 0;
$("smoothing").value = view.smoothing;

async function begin() {
  try {
    await data.refreshRuns();
    listen();
    state.cursor ??= data.runs.keys().next().value ?? null;
    drawRuns();
    reveal(state.cursor);
    setTimeout(charts.load);  // the list is painted first
  } catch (error) {
    if (error.status === undefined) throw error;
    $("lost").hidden = false;
  }
  await news();
  setInterval(() => { if (!document.hidden) news(); }, EVERY);
}

window.addEventListener("hashchange", () => { listen(); drawRuns(); news(); });
begin();
