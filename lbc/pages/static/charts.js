// Figures by plotly.js; a chart keeps its zoom while new points arrive.

import { element, symbol } from "./words.js";

export const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "4px 2px 1px 2px"];
const LINKED = ["score", "entropy", "lag", "speed", "responsibility", "time"];  // zoom together
const zoom = { range: null, heights: new Map(), changed: () => {} };  // frames or minutes; chart -> its own numbers
let loading = null;

// plotly.js is large; the list of runs need not wait for it.
export function load() {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "plotly.js";
    script.onload = done;
    script.onerror = () => failed(new Error("plotly.js did not load"));
    document.head.append(script);
  });
  return loading;
}

export function onZoom(changed) { zoom.changed = changed; }

export function unzoom() {
  zoom.range = null;
  zoom.heights.clear();
  zoom.changed();
}

export const isZoomed = () => zoom.range !== null || zoom.heights.size > 0;

function look() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: value("ink"), faint: value("faint"), grid: value("grid"), card: value("card"), line: value("line"),
    scale: [[0, value("scale-low")], [0.45, value("scale-middle")], [1, value("scale-high")]] };
}

function layout(colours, more) {
  const axis = { gridcolor: colours.grid, zeroline: false, linecolor: colours.line, tickcolor: colours.line,
    tickfont: { color: colours.faint, size: 11 }, automargin: true, fixedrange: false };
  const { xaxis, yaxis, ...others } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink },
    margin: { l: 44, r: 10, t: 6, b: 30 }, hovermode: "x unified",
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink, size: 12 } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis, hoverformat: ".4s", ...xaxis }, yaxis: { ...axis, ...yaxis }, ...others,
  };
}

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };

// One sentence instead of a chart.
function say(place, sentence) {
  if (place.classList.contains("js-plotly-plot")) Plotly.purge(place);
  place.replaceChildren(element("p", "empty", sentence));
  key(place, []);
  place.removeAttribute("role");
}

// What the colours mean, above a chart.
function key(place, entries) {
  const said = entries.flat().join();
  if (place.dataset.key === said) return;
  place.dataset.key = said;
  place.parentElement.querySelector(".key")?.remove();
  if (!entries.length) return;
  place.before(element("p", "key", "", ...entries.map(([name, colour]) => {
    const square = element("i");
    square.style.backgroundColor = colour;
    return element("span", "", "", square, name);
  })));
}

async function draw(place, traces, more, name) {
  const fresh = !place.classList.contains("js-plotly-plot");
  if (fresh) place.replaceChildren();
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", name);
  await Plotly.react(place, traces, layout(look(), more), CONFIG);
  if (!fresh || !LINKED.includes(place.id)) return;
  place.on("plotly_relayout", (change) => zoomed(place, change));
  place.on("plotly_doubleclick", unzoom);
}

function zoomed(place, change) {
  const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const [low, high] = [change["yaxis.range[0]"], change["yaxis.range[1]"]];
  if (low !== undefined && high !== undefined) zoom.heights.set(place.id, [low, high]);
  if (from !== undefined && to !== undefined) {
    zoom.range = [from, to];
    for (const id of LINKED) {
      const other = document.getElementById(id);
      if (other !== place && other.classList.contains("js-plotly-plot")) Plotly.relayout(other, { "xaxis.range": [from, to] });
    }
  }
  zoom.changed(true);
}

// A range that holds all these numbers and seldom changes while they grow.  plotly.js remembers the size of every
// label at every place where it has been: axes that creep on with each report would fill its memory.
function steady(lists, margin = 0, zero = false) {
  let low = zero ? 0 : Infinity, high = zero ? 0 : -Infinity;
  for (const list of lists) for (const value of list) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  const span = high - low || Math.abs(high) || 1, step = 2 ** Math.floor(Math.log2(span / 24));
  const [below, above] = [low < 0 || !zero ? low - margin * span : 0, high + margin * span];
  return [Math.floor(below / step) * step, Math.ceil(above / step) * step];
}

// The zoom that all linked charts share, also one that is drawn for the first time.
function horizontal(view, place, traces) {
  const nticks = Math.max(3, Math.min(8, Math.round(place.clientWidth / 70)));
  return { range: zoom.range ?? steady(traces.map((trace) => trace.x)), nticks, tickangle: 0, tickformat: view.axis === "frames" ? "~s" : "~r",
    title: { text: view.axis, standoff: 4, font: { size: 11, color: look().faint } } };
}

const across = (columns, view) =>
  view.axis === "frames" ? columns.frames ?? [] : (columns.seconds ?? []).map((s) => (s === null ? null : s / 60));

const reachOf = (view) => (view.smoothing ? Math.round(2 ** (view.smoothing / 1.6)) : 0);  // reports to either side

// A centred running mean over what is known; never over more than a fifth of a curve.
export function smoothed(values, widest) {
  const reach = Math.min(widest, Math.floor(values.length / 10));
  if (!reach) return values;
  return values.map((value, i) => {
    if (value === null || value === undefined) return null;
    let sum = 0, count = 0;
    for (let j = Math.max(0, i - reach); j <= Math.min(values.length - 1, i + reach); j += 1) {
      if (values[j] !== null && values[j] !== undefined) { sum += values[j]; count += 1; }
    }
    return sum / count;
  });
}

const hasNumbers = (values) => values?.some((value) => value !== null && value !== undefined) ?? false;

// One line per run; faint behind it what it was before smoothing.
export async function lines(id, series, name, view, nothing, { zero = false } = {}) {
  const place = document.getElementById(id);
  const reach = reachOf(view);
  const traces = [];
  for (const { columns, label, colour, dash } of series) {
    if (!columns) continue;
    const x = across(columns, view), y = columns[name];
    if (hasNumbers(y)) {
      const known = y.filter((value) => value !== null && value !== undefined).length;
      if (reach) traces.push({ x, y, line: { color: colour, width: 1 }, opacity: 0.28, hoverinfo: "skip", mode: "lines", connectgaps: true });
      traces.push({ x, y: smoothed(y, reach), name: label, mode: known === 1 ? "markers" : "lines", connectgaps: true,
        line: { color: colour, width: 2, dash }, marker: { color: colour, size: 7 }, hovertemplate: "%{y:.4~g}" });
    }
    if (name === "score_mean" && hasNumbers(columns.eval_score)) {
      traces.push({ x, y: columns.eval_score, name: `${label}, evaluation`, mode: "lines", connectgaps: true,
        line: { color: colour, width: 1.5, dash: "dot" }, hovertemplate: "%{y:.4~g}" });
    }
  }
  if (!traces.length) return say(place, nothing);
  const height = zoom.heights.get(id) ?? steady(traces.map((trace) => trace.y), 0.04, zero);
  const more = { xaxis: horizontal(view, place, traces), yaxis: { range: height, nticks: id === "score" ? 8 : 5 } };
  return draw(place, traces, more, `${id}: ${series.map((s) => s.label).join(", ")}`);
}

// The curve alone, for as long as plotly.js is still on its way.
export function sketch(id, series, name) {
  const known = series.map(({ columns, colour }) => ({ colour,
    points: (columns?.[name] ?? []).map((y, i) => [columns.frames[i], y]).filter(([, y]) => y !== null) }));
  const [xs, ys] = [0, 1].map((k) => known.flatMap(({ points }) => points.map((point) => point[k])));
  if (xs.length < 2) return;
  const [left, low] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left || 1, Math.max(...ys) - low || 1];
  const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "sketch");
  for (const { points, colour } of known) {
    const line = document.createElementNS(NS, "polyline");
    line.setAttribute("points", points.map(([x, y]) => `${(100 * (x - left)) / width},${100 - (100 * (y - low)) / height}`).join(" "));
    line.setAttribute("stroke", colour);
    svg.append(line);
  }
  document.getElementById(id).replaceChildren(svg);
}

// Shares that add up to one, as bands.
export async function bands(id, columns, prefix, view, palette, nothing, label) {
  const place = document.getElementById(id);
  const names = Object.keys(columns ?? {}).filter((name) => name.startsWith(prefix) && hasNumbers(columns[name]));
  if (!names.length) return say(place, nothing);
  const x = across(columns, view);
  const reach = reachOf(view);
  const traces = names.map((name, i) => {
    const colour = palette[i % palette.length];
    return { x, y: smoothed(columns[name], reach), name: label(name.slice(prefix.length)), stackgroup: "one", mode: "lines",
      line: { width: 0.5, color: colour }, fillcolor: `${colour}b8`, hovertemplate: "%{y:.0%}" };
  });
  key(place, traces.map((trace) => [trace.name, trace.line.color]));
  const more = { xaxis: horizontal(view, place, traces),
    yaxis: { range: [0, 1.001], tickformat: ".0%", nticks: 4, fixedrange: true } };
  return draw(place, traces, more, `${id}: ${traces.map((t) => t.name).join(", ")}`);
}

// A heat map per dimension, all on one scale.
export async function heatMaps(id, dimensions, view, nothing) {
  const place = document.getElementById(id);
  const known = dimensions.filter((dimension) => dimension.frames.length);
  if (!known.length) return say(place, nothing);
  const colours = look();
  const count = place.clientWidth > 760 ? 3 : place.clientWidth > 480 ? 2 : 1;
  const rows = Math.ceil(known.length / count);
  place.style.height = `${34 + 132 * rows}px`;
  const shares = known.flatMap((d) => d.shares.flat()).filter((share) => share > 0).sort((a, b) => a - b);
  const [, highest] = steady([[shares[Math.floor(0.97 * (shares.length - 1))]]], 0, true);  // few bins with few episodes would pale the others
  const more = { annotations: [], hovermode: "closest", margin: { l: 30, r: 62, t: 20, b: 26 } };
  const traces = known.map((dimension, k) => {
    const end = k ? k + 1 : "";
    const column = k % count, row = Math.floor(k / count);
    const left = column / count + (column ? 0.022 : 0), right = (column + 1) / count - (column < count - 1 ? 0.012 : 0);
    const top = 1 - row / rows - (row ? 0.24 / rows : 0), bottom = 1 - (row + 1) / rows;
    const axis = { gridcolor: "rgba(0,0,0,0)", zeroline: false, tickfont: { color: colours.faint, size: 10 }, fixedrange: true };
    const x = view.axis === "frames" ? dimension.frames : dimension.seconds.map((s) => s / 60);
    const half = (x.at(-1) - x[0]) / (x.length - 1) / 2;  // of a bin
    more[`xaxis${end}`] = { ...axis, domain: [left, right], anchor: `y${end}`, nticks: 5, tickformat: "~s",
      ...(half > 0 ? { range: steady([[x[0] - half, x.at(-1) + half]]) } : {}), showticklabels: row === rows - 1 || k + count >= known.length };
    more[`yaxis${end}`] = { ...axis, domain: [bottom, top], anchor: `x${end}`, tickvals: [0, dimension.regions - 1], ticktext: ["1", String(dimension.regions)] };
    more.annotations.push({ text: `<b>${symbol(dimension.name)}</b>`, x: left, y: top, xref: "paper", yref: "paper",
      xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12, color: colours.ink } });
    const z = Array.from({ length: dimension.regions }, (_, region) => dimension.shares.map((shares) => shares[region]));
    return { type: "heatmap", x, z, zmin: 0, zmax: highest, colorscale: colours.scale, xaxis: `x${end}`, yaxis: `y${end}`, showscale: k === 0,
      colorbar: { thickness: 10, len: 1, outlinewidth: 0, tickformat: ".0%", nticks: 5, tickfont: { size: 10, color: colours.faint }, x: 1.01 },
      hovertemplate: `${symbol(dimension.name)}: %{z:.0%} in region %{customdata}<br>%{x:.3s} ${view.axis}<extra></extra>`,
      customdata: z.map((line, region) => line.map(() => region + 1)) };
  });
  return draw(place, traces, more, `Chosen regions of ${known.map((d) => symbol(d.name)).join(", ")}`);
}

const LOSSES = ["value", "q", "policy", "auxiliary", "entropy"];

export async function losses(id, columns, view, palette, nothing) {
  const place = document.getElementById(id);
  const kinds = LOSSES.filter((kind) => Object.keys(columns ?? {}).some((name) => name.endsWith(`/loss_${kind}`)));
  if (!kinds.length) return say(place, nothing);
  const colours = look(), x = across(columns, view);
  const count = place.clientWidth > 760 ? kinds.length : 1, rows = Math.ceil(kinds.length / count);
  place.style.height = `${rows > 1 ? 40 + 150 * rows : 210}px`;
  const more = { annotations: [], hovermode: "closest", margin: { l: 40, r: 10, t: 22, b: 30 } };
  const reach = reachOf(view);
  const traces = kinds.flatMap((kind, k) => {
    const end = k ? k + 1 : "", column = k % count, row = Math.floor(k / count);
    const left = column / count + (column ? 0.03 : 0), right = (column + 1) / count;
    const top = 1 - row / rows - (row ? 0.28 / rows : 0), bottom = 1 - (row + 1) / rows;
    const axis = { gridcolor: colours.grid, zeroline: false, tickfont: { color: colours.faint, size: 10 }, nticks: 4, fixedrange: true };
    const names = Object.keys(columns).filter((name) => name.endsWith(`/loss_${kind}`));
    const curves = names.map((name) => smoothed(columns[name], reach));
    more[`xaxis${end}`] = { ...axis, domain: [left, right], anchor: `y${end}`, tickformat: view.axis === "frames" ? "~s" : "~r", range: zoom.range ?? steady([x]) };
    more[`yaxis${end}`] = { ...axis, domain: [bottom, top], anchor: `x${end}`, range: steady(curves, 0.04) };
    more.annotations.push({ text: kind, x: left, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom",
      showarrow: false, font: { size: 11.5, color: colours.ink } });
    return names.map((name, i) => {
      const policy = Number(name.split("/")[1]);
      return { x, y: curves[i], name: `policy ${policy + 1}`, mode: "lines", connectgaps: true,
        line: { width: 1.4, color: palette[policy % palette.length] }, xaxis: `x${end}`, yaxis: `y${end}`, hovertemplate: "%{y:.3~g}" };
    });
  });
  key(place, [...new Map(traces.map((trace) => [trace.name, trace.line.color]))]);
  return draw(place, traces, more, `Losses: ${kinds.join(", ")}`);
}
