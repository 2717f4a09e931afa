// Numbers and names as a person reads them.

export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, size] of [["B", 1e9], ["M", 1e6], ["K", 1e3]]) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  }
  return String(Number(value.toPrecision(3)));
}

export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export function ago(time) {
  if (!time) return "";
  const seconds = Math.max(0, Date.now() / 1000 - time);
  return seconds < 172800 ? `${lasting(seconds)} ago` : new Date(time * 1000).toLocaleDateString("en-CA");
}

const LETTERS = { tau: "τ", omega: "ω", selection: "selection" };
const LOW = "₀₁₂₃₄₅₆₇₈₉";

export function symbol(name) {  // tau_1 -> τ₁
  const [word, index] = name.split("_");
  const low = index ? [...index].map((digit) => LOW[digit] ?? digit).join("") : "";
  return (LETTERS[word] ?? word) + low;
}

export function element(tag, classes = "", text = "", ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

// Sentences carry commands in `backticks`.
export function withCode(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", "", part) : part));
}

// The names without the folders that all of them share.
export function distinct(names) {
  const parts = names.map((name) => name.split("/"));
  let same = 0;
  while (names.length > 1 && parts.every((p) => p.length > same + 1 && p[same] === parts[0][same])) same += 1;
  return parts.map((p) => p.slice(same).join("/"));
}
