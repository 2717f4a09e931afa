// What the server has said: the list of runs, and the curves of those that are shown.

export const runs = new Map();  // id -> what the list says, in the list's order
export const colours = { light: [], dark: [], policies: [] };
export let folders = "";
const curves = new Map();  // id -> { generation, kept, columns, seen }
let version = "";

// An error with a status is the server's; any other is this page's own.
async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" }).catch(() => ({ ok: false, status: 0 }));
  if (answer.status === 204) return null;
  if (!answer.ok) throw Object.assign(new Error(`${path}: ${answer.status}`), { status: answer.status });
  return answer.json();
}

// Whether anything in the list has changed.
export async function refreshRuns() {
  const found = await ask(`api/runs?version=${version}`);
  if (!found) return false;
  ({ version, folders } = found);
  Object.assign(colours, found.colours);
  runs.clear();
  for (const run of found.runs) runs.set(run.id, run);
  return true;
}

const seen = (run) => `${run.frames} ${run.changed}`;

// Fetches what is new of the shown runs and forgets all others; whether there was anything.
export async function refreshCurves(shown) {
  for (const id of curves.keys()) if (!shown.includes(id)) curves.delete(id);
  const wanted = shown.filter((id) => runs.has(id) && curves.get(id)?.seen !== seen(runs.get(id)));
  const news = await Promise.all(wanted.map(refreshCurve));
  return news.some(Boolean);
}

async function refreshCurve(id) {
  const mark = seen(runs.get(id));
  const old = curves.get(id);
  const query = old ? `?generation=${old.generation}&have=${old.kept}` : "";
  let found;
  try {
    found = await ask(`api/runs/${id}${query}`);
  } catch (error) {
    if (error.status !== 404) throw error;
    found = { generation: 0, start: 0, kept: 0, columns: {} };  // it vanished
  }
  const columns = found.start ? extended(old.columns, found.start, found.columns) : found.columns;
  curves.set(id, { generation: found.generation, kept: found.kept, columns, seen: mark });
  return true;
}

// The first `start` entries of each column, and the new ones behind them.
function extended(columns, start, news) {
  const length = Object.values(news)[0]?.length ?? 0;
  const all = {};
  for (const name of new Set([...Object.keys(columns), ...Object.keys(news)])) {
    const before = columns[name]?.slice(0, start) ?? new Array(start).fill(null);
    all[name] = before.concat(news[name] ?? new Array(length).fill(null));
  }
  return all;
}

export const columnsOf = (id) => curves.get(id)?.columns ?? null;
export const details = (id) => ask(`api/runs/${id}/details`);
export const film = (id) => ask(`api/runs/${id}/film`);
