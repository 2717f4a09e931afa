"use strict";
// Draws the figures of a report in the colours of the page; nothing is fetched.
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const hidden = new Set(); // "game/line", by the legend
  const drawn = new Set();
  const dashes = ["solid", "dash", "dot"];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.querySelector("button.theme");

  function remembered() {
    try { return localStorage.getItem("lbc-theme"); } catch { return null; }
  }
  let chosen = remembered();

  function setTheme(theme) {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
    drawn.forEach(draw);
  }
  const wanted = () => chosen || (dark.matches ? "dark" : "light");

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (number) => css(`--c${number % 7}`);
  const dash = (number) => dashes[Math.floor(number / 7) % dashes.length];
  const clear = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

  const words = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;"); // plotly reads tags otherwise

  const makers = {
    lines(figure, game) {
      const traces = [];
      const some = figure.lines.filter((line) => !hidden.has(`${game}/${line.colour}`));
      for (const line of some) {
        const common = { x: line.x, type: "scatter", mode: line.x.length > 1 ? "lines" : "markers" };
        const paint = colour(line.colour);
        if (line.low) {
          const edge = { ...common, hoverinfo: "skip", line: { width: 0 } };
          traces.push({ ...edge, y: line.low }, { ...edge, y: line.high, fill: "tonexty", fillcolor: clear(paint, 0.18) });
        }
        traces.push({
          ...common, y: line.y, name: words(line.name), opacity: line.faint ? 0.35 : 1,
          line: { color: paint, width: line.faint ? 1 : 2.2, dash: dash(line.colour) }, marker: { color: paint },
          ...(line.faint ? { hoverinfo: "skip" } : { hovertemplate: "%{y:.4g}" }),
        });
      }
      const layout = { hovermode: some.length > 6 ? "closest" : "x unified", yaxis: { title: { text: figure.y } } };
      if (figure.zero) layout.yaxis.rangemode = "tozero";
      layout.shapes = figure.levels.map((level) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: level.y, y1: level.y,
        line: { color: css("--quiet"), width: 1, dash: "dash" },
      }));
      layout.annotations = figure.levels.map((level) => ({
        xref: "paper", x: 1, xanchor: "right", y: level.y, yanchor: "bottom", showarrow: false,
        text: `${level.name} ${level.y}`, font: { color: css("--quiet"), size: 11 },
      }));
      return [traces, layout];
    },
    areas(figure) {
      const traces = figure.series.map((series) => ({
        x: figure.x, y: series.y, name: words(series.name), type: "scatter", mode: "lines", stackgroup: "all",
        line: { width: 0.5, color: css("--paper") }, fillcolor: colour(series.colour), hovertemplate: "%{y:.0%}",
      }));
      return [traces, { hovermode: "x unified", yaxis: { title: { text: figure.y }, range: [0, 1], tickformat: ".0%" } }];
    },
    bars(figure, _, element) {
      const rows = figure.rows.map((_, i) => i);
      element.style.height = `${70 + 46 * rows.length}px`;
      const traces = figure.series.map((series) => ({
        x: series.x, y: rows, name: series.name, type: "bar", orientation: "h", width: 0.4,
        marker: { color: colour(series.colour) }, hovertemplate: `${series.name}: %{x:.0%}<extra></extra>`,
      }));
      return [traces, {
        barmode: "stack", margin: { l: 12, r: 20, t: 12, b: 40 },
        xaxis: { range: [0, 1], tickformat: ".0%", dtick: 0.25, title: { text: "share of the time" } },
        yaxis: { range: [rows.length - 0.5, -0.7], showticklabels: false, showgrid: false },
        annotations: figure.rows.map((name, i) => ({
          x: 0, xanchor: "left", y: i, yanchor: "bottom", yshift: 9, showarrow: false, text: words(name), font: { size: 11 },
        })),
      }];
    },
    heat(figure) {
      const rows = figure.labels.length, marks = Math.min(rows, 5), ticks = [];
      for (let i = 0; i < marks; i++) ticks.push(Math.round((i * (rows - 1)) / Math.max(1, marks - 1)));
      const trace = {
        type: "heatmap", x: figure.x, z: figure.z, colorscale: "Viridis", showscale: false, zmin: 0,
        y: figure.labels.map((_, i) => i), customdata: figure.z.map((row, i) => row.map(() => figure.labels[i])),
        hovertemplate: "%{customdata}: %{z:.0%} at %{x:.3s} frames<extra></extra>",
      };
      return [[trace], { margin: { l: 44, r: 6, t: 4, b: 24 }, yaxis: {
        tickvals: ticks, ticktext: ticks.map((i) => figure.labels[i]), title: { text: "" }, showgrid: false,
      } }];
    },
  };

  function draw(element) {
    const printed = root.classList.contains("printing"); // then nobody waits for a plot to find its size
    const figure = figures[element.dataset.figure];
    const [traces, own] = makers[figure.kind](figure, element.dataset.game, element);
    const axis = { gridcolor: css("--line"), linecolor: css("--line"), zeroline: false, automargin: true, fixedrange: true };
    const narrow = element.clientWidth < 480;
    Plotly.react(element, traces, {
      margin: { l: 56, r: 12, t: 8, b: 40 }, showlegend: false, dragmode: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink"), size: 12 } },
      ...own, ...(printed ? { width: element.clientWidth, height: element.clientHeight } : {}),
      xaxis: { ...axis, tickformat: "~s", nticks: narrow ? 5 : 8,
        ...(figure.kind === "heat" ? {} : { title: { text: "frames" } }), ...own.xaxis },
      yaxis: { ...axis, ...own.yaxis },
    }, { displayModeBar: false, responsive: true });
    drawn.add(element);
  }

  button.addEventListener("click", () => {
    chosen = wanted() === "dark" ? "light" : "dark";
    try { localStorage.setItem("lbc-theme", chosen); } catch { /* a file may not be allowed to remember */ }
    setTheme(chosen);
  });
  dark.addEventListener("change", () => setTheme(wanted()));

  for (const key of document.querySelectorAll(".legend button")) {
    key.addEventListener("click", () => {
      const shown = key.getAttribute("aria-pressed") !== "true";
      const same = `.legend button[data-game="${key.dataset.game}"][data-line="${key.dataset.line}"]`;
      document.querySelectorAll(same).forEach((twin) => twin.setAttribute("aria-pressed", String(shown)));
      hidden[shown ? "delete" : "add"](`${key.dataset.game}/${key.dataset.line}`);
      drawn.forEach((element) => { if (element.dataset.game === key.dataset.game) draw(element); });
    });
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "600px" });

  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    root.classList.add("printing");
    charts.forEach((element) => { if (element.checkVisibility()) draw(element); });
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    setTheme(wanted());
    drawn.forEach((element) => Plotly.Plots.resize(element));
  });

  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    document.querySelectorAll("details.moving").forEach((film) => { film.open = false; });
  }
  setTheme(wanted());
  charts.forEach((element) => watcher.observe(element));
})();
