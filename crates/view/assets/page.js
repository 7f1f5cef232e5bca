// The page: draws what is open, and answers to pointer and keys.
"use strict";

const scene = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const svg = vendor.select("#picture");
const BUDGET = 110; // Things that are open when the page opens.
const MOST = 800; // Things that one key press opens.
const state = { selected: null, hits: [], hit: -1, query: "", drawn: new Map(), frames: new Map(), size: [1, 1], things: [], due: false };

const make = (parent, name, attributes = {}, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
};
const html = (parent, name, text, className) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  if (parent) parent.appendChild(element);
  return element;
};
const bytes = (n) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < 5) { n /= 1024; i++; }
  return (i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[i];
};

// ---- Opening and closing ----

/** Opens the boxes around a box, and itself. */
function openTo(side, frame) {
  for (let box = frame; box !== null; box = side.boxes[box].parent) {
    if (!side.open.has(box)) { side.open.add(box); forget(side, box); }
  }
}

function toggle(s, frame) {
  const side = scene.sides[s];
  if (side.open.has(frame)) side.open.delete(frame); else side.open.add(frame);
  forget(side, frame);
  const before = state.frames.get(s + ":" + frame);
  redraw();
  const after = state.frames.get(s + ":" + frame);
  // The corner stays where it was.
  if (before && after) {
    const t = vendorTransform();
    svg.call(zoomer.transform, vendor.zoomIdentity.translate(t.x + (before.x - after.x) * t.k, t.y + (before.y - after.y) * t.k).scale(t.k));
  }
}

/** Opens boxes level by level, as long as there is room for the things of a whole level. */
function openSome(side, budget) {
  let used = 0;
  for (const root of side.roots) {
    for (let level = [root]; level.length; level = level.flatMap((box) => side.index[box].boxes)) {
      const things = level.reduce((sum, box) => sum + side.index[box].nodes.length + side.index[box].boxes.length, 0);
      if (used + things > budget && side.open.size) break;
      used += things;
      level.forEach((box) => side.open.add(box));
    }
  }
}

// ---- Drawing ----

const zoomer = vendor.zoom().scaleExtent([0.02, 4]).on("zoom", (event) => {
  const world = byId("world");
  world.setAttribute("transform", event.transform);
  // What cannot be read is not drawn.
  world.classList.toggle("far", event.transform.k < 0.4);
  world.classList.toggle("farther", event.transform.k < 0.18);
  if (!state.due) { state.due = true; requestAnimationFrame(cull); }
});

/** Draws only what is in view, or a screen away from it. */
function cull() {
  state.due = false;
  const { width, height } = byId("picture").getBoundingClientRect(), t = vendorTransform();
  const [x0, y0, x1, y1] = [-width / 2 - t.x, -height / 2 - t.y, 1.5 * width - t.x, 1.5 * height - t.y].map((v) => v / t.k);
  for (const thing of state.things) {
    const shown = thing.x1 >= x0 && thing.x0 <= x1 && thing.y1 >= y0 && thing.y0 <= y1;
    if (shown !== thing.shown) { thing.shown = shown; for (const one of thing.all) one.style.display = shown ? "" : "none"; }
  }
}

function culled(x0, y0, x1, y1, ...all) { state.things.push({ x0, y0, x1, y1, all, shown: true }); }
const vendorTransform = () => byId("picture").__zoom || vendor.zoomIdentity;

function defs(parent) {
  const all = make(parent, "defs");
  const weave = make(all, "pattern", { id: "weave", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  make(weave, "line", { x1: 0, y1: 0, x2: 0, y2: 7, style: "stroke:var(--moves-ink);stroke-width:1.6;opacity:.45" });
  const unused = make(all, "pattern", { id: "unused", width: 4, height: 4, patternUnits: "userSpaceOnUse" });
  make(unused, "circle", { cx: 1.5, cy: 1.5, r: 1, style: "fill:var(--padded)" });
}

function redraw() {
  const world = byId("world");
  world.replaceChildren();
  state.drawn.clear();
  state.frames.clear();
  state.things = [];
  let x = 0, height = 0;
  scene.sides.forEach((side, s) => {
    let y = 0, width = 0;
    if (side.title) { make(world, "text", { x, y: y + 14, class: "side-title", style: "font-size:16px" }, side.title); y += 26; }
    for (const root of side.roots) {
      if (side.open.has(root)) {
        const laid = layoutBox(side, root);
        drawBox(world, s, laid, x, y, 0);
        y += laid.height + 30; width = Math.max(width, laid.width);
      } else {
        const size = closedSize(side, root);
        drawClosed(world, s, root, { x, y, ...size });
        y += size.height + 30; width = Math.max(width, size.width);
      }
    }
    x += width + 60; height = Math.max(height, y);
  });
  state.size = [Math.max(1, x - 60), Math.max(1, height - 30)];
  mark();
  cull();
}

function drawBox(parent, s, laid, x, y, depth) {
  const side = scene.sides[s], box = side.boxes[laid.frame];
  const group = make(parent, "g", { transform: `translate(${x},${y})`, class: "frame " + box.kind + (depth % 2 ? " deep" : "") });
  const [ox, oy] = offset(parent);
  group.__at = [ox + x, oy + y];
  state.frames.set(s + ":" + laid.frame, { x: ox + x, y: oy + y });
  make(group, "rect", { width: laid.width, height: laid.height, rx: 8 });
  make(group, "text", { x: 10, y: 16 }, "▾ " + (box.kind === "entry" ? "ENTRY " : "") + box.title);
  const bar = make(group, "rect", { class: "bar", width: laid.width, height: SIZE.head, rx: 8 });
  make(bar, "title", {}, "Close this box");
  bar.addEventListener("click", (event) => { event.stopPropagation(); toggle(s, laid.frame); });
  for (const edge of laid.edges) drawEdge(group, s, edge);
  for (const item of laid.items) {
    const i = +item.id.slice(1);
    if (item.id[0] === "n") drawNode(group, s, i, item);
    else if (item.inner) drawBox(group, s, item.inner, item.x, item.y, depth + 1);
    else drawClosed(group, s, i, item);
    stubs(group, item);
  }
  // Labels above all.
  for (const edge of laid.edges) labelEdge(group, s, edge);
}

const offset = (element) => element.__at || [0, 0];

/** A line that leaves and arrives upright. */
function path(points) {
  let d = `M${points[0].x.toFixed(1)},${points[0].y.toFixed(1)}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    const middle = (a.y + b.y) / 2;
    d += `C${a.x.toFixed(1)},${middle.toFixed(1)} ${b.x.toFixed(1)},${middle.toFixed(1)} ${b.x.toFixed(1)},${b.y.toFixed(1)}`;
  }
  return d;
}

function drawEdge(parent, s, edge) {
  const kind = (edge.kind && edge.kind !== "data" ? " " + edge.kind : "") + (edge.large ? " large" : "");
  const line = make(parent, "path", { d: path(edge.points), class: "edge" + kind, "stroke-width": edge.width });
  if (edge.edges.length > 1) make(line, "title", {}, edge.edges.length + " values");
  const ends = new Set();
  for (const e of edge.edges) ends.add(scene.sides[s].edges[e][0]).add(scene.sides[s].edges[e][1]);
  line.__ends = [s, ends];
  // A trunk or a line to a port goes on.
  const isLast = edge.to && edge.to[0] !== "o" && !(edge.to[0] === "b" && scene.sides[s].open.has(+edge.to.slice(1)));
  const all = [line];
  if (isLast) {
    const [a, b] = [edge.points[edge.points.length - 2], edge.points[edge.points.length - 1]];
    const size = 4 + edge.width, down = b.y >= a.y ? 1 : -1;
    const head = make(parent, "path", { class: "head" + (edge.large ? " large" : ""), d: `M${b.x},${b.y}l${-size / 1.6},${-size * down}h${size * 1.25}z` });
    if (edge.large) all.push(make(parent, "path", { class: "head large", d: `M${b.x},${b.y - size * down}l${-size / 1.6},${-size * down}h${size * 1.25}z` }));
    head.__ends = line.__ends;
    all.push(head);
  }
  const [xs, ys] = [edge.points.map((p) => p.x), edge.points.map((p) => p.y)], [ox, oy] = offset(parent);
  culled(ox + Math.min(...xs), oy + Math.min(...ys), ox + Math.max(...xs), oy + Math.max(...ys), ...all);
}

/** Short lines for values that cross the border of a box with too many such values to draw. */
function stubs(parent, { x, y, width, height, enters, leaves }) {
  const at = (n) => x + width / 2 + (n ? 12 : 0);
  if (enters) {
    const line = make(parent, "path", { class: "stub", d: `M${at(1)},${y - 13}v9l-3,-4m3,4l3,-4` });
    make(line, "title", {}, enters + " from outside of the box");
  }
  if (leaves) {
    const line = make(parent, "path", { class: "stub", d: `M${at(1)},${y + height + 3}v9l-3,-4m3,4l3,-4` });
    make(line, "title", {}, leaves + " to outside of the box");
  }
}

function labelEdge(parent, s, edge) {
  if (!edge.label || !edge.at) return;
  make(parent, "text", { class: "edge-label", x: edge.at.x, y: edge.at.y + 3 }, edge.label);
}

function drawClosed(parent, s, i, { x, y, width, height }) {
  const side = scene.sides[s], [ox, oy] = offset(parent);
  state.frames.set(s + ":" + i, { x: ox + x, y: oy + y, width, shut: true });
  const changes = countChanges(side, i);
  const group = make(parent, "g", { transform: `translate(${x},${y})`, class: "closed" + (changes ? " changed edited" : "") });
  make(group, "title", {}, "Open: " + side.boxes[i].title);
  make(group, "rect", { class: "shell", x: 4, y: 4, width: width - 4, height: height - 4, rx: 6 });
  make(group, "rect", { class: "shell", width: width - 4, height: height - 4, rx: 6 });
  closedLines(side, i).forEach((line, n) => {
    make(group, "text", { x: SIZE.pad + 3, y: SIZE.pad + 11 + n * SIZE.line, class: n ? "faint" : "name" }, line);
  });
  if (changes) make(group, "rect", { class: "ring", x: -4, y: -4, width: width + 8, height: height + 8, rx: 9 });
  group.addEventListener("click", (event) => { event.stopPropagation(); toggle(s, i); });
  culled(ox + x, oy + y, ox + x + width, oy + y + height, group);
}

function shellOf(group, node, width, height, more = { class: "shell" }) {
  const kind = node.kind;
  if (kind === "reduction") return make(group, "path", { ...more, d: `M0,0H${width}L${width - 14},${height}H14Z` });
  const round = { input: height / 2, control: 10, free: 8 }[kind] ?? 3;
  return make(group, "rect", { ...more, width, height, rx: Math.min(round, 22) });
}

function drawNode(parent, s, i, { x, y, width, height }) {
  const node = scene.sides[s].nodes[i], [ox, oy] = offset(parent);
  const weighted = scene.weights !== null;
  const classes = ["node", node.kind, weighted ? "weighted" : "", node.change ? "changed " + node.change : ""];
  const group = make(parent, "g", { transform: `translate(${x},${y})`, class: classes.join(" ") });
  make(group, "title", {}, node.text);
  shellOf(group, node, width, height);
  if (weighted && node.share >= 0.001) {
    // The share is also a bar on the left, for black and white.
    shellOf(group, node, width, height, { class: "warmth", opacity: (0.75 * Math.sqrt(node.share)).toFixed(3) });
    const tall = Math.max(2, height * node.share);
    make(group, "rect", { class: "warmth", x: -7, y: height - tall, width: 6, height: tall });
  }
  const lines = linesOf(node), center = width / 2;
  const widest = Math.max(...lines.map(([line, kind]) => textWidth(line) * (kind === "title" ? 1.06 : 1)));
  if (node.kind === "moves" || node.kind === "exchanges") {
    make(group, "rect", { class: "weave", width, height, rx: 3 });
    if (!weighted) make(group, "rect", { class: "label-back", x: center - widest / 2 - 3, y: SIZE.pad - 1, width: widest + 6, height: lines.length * SIZE.line + 1, rx: 3 });
  }
  if (node.kind === "exchanges" || node.kind === "contraction") make(group, "rect", { class: "inner", x: 3, y: 3, width: width - 6, height: height - 6 });
  if (node.result) make(group, "rect", { class: "inner", x: -3, y: -3, width: width + 6, height: height + 6, rx: 5 });
  lines.forEach(([line, kind], n) => {
    const attributes = { x: center, y: SIZE.pad + 11 + n * SIZE.line, "text-anchor": "middle", class: kind === "title" ? "name" : kind };
    make(group, "text", attributes, line);
  });
  if (node.isPadded) {
    const full = width - 2 * SIZE.pad - (node.kind === "reduction" ? 22 : 0), left = (width - full) / 2;
    make(group, "rect", { class: "unused", x: left, y: height - 11, width: full, height: 6 });
    make(group, "rect", { class: "used", x: left, y: height - 11, width: Math.max(1.5, full * node.bytes / node.padded), height: 6 });
  }
  if (node.change) {
    make(group, "rect", { class: "ring", x: -5, y: -5, width: width + 10, height: height + 10, rx: 6 });
    const sign = { added: "+", removed: "−", edited: "~" }[node.change];
    make(group, "circle", { class: "badge", cx: width + 3, cy: -3, r: 8 });
    make(group, "text", { class: "badge-text", x: width + 3, y: 1 }, sign);
  }
  group.addEventListener("click", (event) => { event.stopPropagation(); select(s, i, false); });
  culled(ox + x, oy + y, ox + x + width, oy + y + height, group);
  state.drawn.set(s + ":" + i, { group, x: ox + x, y: oy + y, width, height });
}

// ---- Looking around ----

function fit() {
  const { width, height } = byId("picture").getBoundingClientRect();
  const k = Math.min(1.2, 0.96 * Math.min(width / state.size[0], height / state.size[1]));
  const readable = Math.max(k, 0.02);
  const x = (width - state.size[0] * readable) / 2;
  svg.call(zoomer.transform, vendor.zoomIdentity.translate(x, Math.max(12, (height - state.size[1] * readable) / 2)).scale(readable));
}

/** Shows the whole width from the top, but not so small that nothing can be read. */
function start() {
  const { width, height } = byId("picture").getBoundingClientRect();
  const all = 0.96 * Math.min(width / state.size[0], height / state.size[1]);
  if (all >= 0.6) { fit(); return; }
  const k = Math.max(0.6, Math.min(1, 0.96 * width / state.size[0]));
  // What is too wide begins with its first thing.
  let left = (width - state.size[0] * k) / 2;
  if (state.size[0] * k > width) {
    const first = [...state.drawn.values()].concat([...state.frames.values()].filter((at) => at.shut)).sort((a, b) => a.y - b.y)[0];
    left = first && scene.sides.length === 1 ? Math.min(12, width / 2 - (first.x + first.width / 2) * k) : 12;
  }
  svg.call(zoomer.transform, vendor.zoomIdentity.translate(left, 12).scale(k));
}

function pan(dx, dy) { const t = vendorTransform(); svg.call(zoomer.transform, vendor.zoomIdentity.translate(t.x + dx, t.y + dy).scale(t.k)); }

function center(s, i) {
  const at = state.drawn.get(s + ":" + i);
  if (!at) return;
  const { width, height } = byId("picture").getBoundingClientRect();
  const k = Math.max(0.7, vendorTransform().k);
  svg.call(zoomer.transform, vendor.zoomIdentity.translate(width / 2 - (at.x + at.width / 2) * k, height / 2 - (at.y + at.height / 2) * k).scale(k));
}

/** Selects an instruction; `reveal` opens its boxes and moves it into the middle. */
function select(s, i, reveal) {
  state.selected = s === null ? null : [s, i];
  if (s !== null && reveal && !state.drawn.has(s + ":" + i)) { openTo(scene.sides[s], scene.sides[s].nodes[i].box); redraw(); }
  panel();
  if (s !== null && reveal) center(s, i);
  mark();
}

/** Marks the selected instruction with its edges. */
function mark() {
  for (const { group } of state.drawn.values()) group.classList.remove("selected");
  const [s, i] = state.selected || [-1, -1];
  state.drawn.get(s + ":" + i)?.group.classList.add("selected");
  for (const line of document.querySelectorAll("#world .edge, #world .head")) {
    line.classList.toggle("near", Boolean(line.__ends && line.__ends[0] === s && line.__ends[1].has(i)));
  }
}

// ---- The side panel ----

function panel() {
  const aside = byId("panel");
  aside.replaceChildren();
  if (!state.selected) { notesPanel(aside); return; }
  const [s, i] = state.selected, side = scene.sides[s], node = side.nodes[i];
  const away = html(aside, "button", "×");
  away.id = "away";
  away.title = "Nothing selected (Esc)";
  away.addEventListener("click", () => select(null));
  html(aside, "h2", "%" + node.name);
  html(aside, "p", [side.title, node.title, node.shape].filter(Boolean).join(" · "));
  for (const mark of node.marks || []) html(aside, "p", "▪ " + mark);
  const stored = node.isStored ? "" : " (computed where it is read, or another name)";
  const padded = node.padded > node.bytes ? `; with padding ${bytes(node.padded)}` : "";
  section(aside, "Memory of the result", bytes(node.bytes) + padded + stored);
  (node.notes || []).forEach((n) => noteParagraph(aside, n));
  section(aside, "Computation", scene.strings[node.computation]);
  section(aside, "Scope", scene.strings[node.opName]);
  const file = scene.strings[node.file];
  section(aside, "Source", file && file + (node.line ? ":" + node.line : ""));
  links(aside, "Operands", s, side.edges.filter((edge) => edge[1] === i).map((edge) => [edge[0], edge[3] || (edge[2] === "data" ? "" : edge[2])]));
  list(aside, "Operands within", node.inlined || []);
  links(aside, "Users", s, side.edges.filter((edge) => edge[0] === i).map((edge) => [edge[1], edge[3] || (edge[2] === "data" ? "" : edge[2])]));
  (node.calls || []).forEach((frame) => {
    const button = html(html(aside, "p"), "button", "calls " + side.boxes[frame].title, "link");
    button.addEventListener("click", () => { const first = side.index[frame].nodes[0]; if (first !== undefined) select(s, first, true); else toggle(s, frame); });
  });
  html(aside, "h3", "HLO");
  html(aside, "pre", node.text);
  for (const [name, value] of node.details || []) section(aside, name, value, true);
}

function section(parent, title, text, code) {
  if (!text) return;
  html(parent, "h3", title);
  html(html(parent, "p"), code ? "code" : "span", text);
}

function list(parent, title, lines) {
  if (!lines.length) return;
  html(parent, "h3", title);
  const all = html(parent, "ul");
  for (const line of lines) html(html(all, "li"), "code", line);
}

function links(parent, title, s, ends) {
  if (!ends.length) return;
  html(parent, "h3", `${title} (${ends.length})`);
  const all = html(parent, "ul");
  for (const [i, label] of ends.slice(0, 60)) {
    const node = scene.sides[s].nodes[i];
    const button = html(html(all, "li"), "button", "%" + node.name, "link");
    html(button.parentNode, "small", " " + node.op + " " + node.shape + (label ? " · " + label : ""));
    button.addEventListener("click", () => select(s, i, true));
  }
}

function noteParagraph(parent, n) {
  const [pass, place, text] = scene.notes[n];
  const note = html(parent, "div", undefined, "note");
  const title = html(note, "button", `Note ${n + 1}: ${pass}`, "link");
  title.addEventListener("click", () => showNote(n));
  html(note, "p", text);
  html(note, "small", place.replaceAll("`", ""));
}

/** The notes on all rewrites, while nothing is selected. */
function notesPanel(aside) {
  if (!scene.notes.length) return;
  html(aside, "h2", "Rewrites");
  scene.notes.slice(0, 200).forEach((_, n) => noteParagraph(aside, n));
  if (scene.notes.length > 200) html(aside, "p", `… and ${scene.notes.length - 200} more`);
}

/** Goes to the next instruction that a note explains. */
function showNote(n) {
  const all = scene.sides.flatMap((side, s) => side.nodes.flatMap((node, i) => (node.notes || []).includes(n) ? [[s, i]] : []));
  step(all, 1);
}

/** Selects the instruction of a list after (or before) the selected one. */
function step(all, by) {
  if (!all.length) return;
  const now = state.selected ? all.findIndex(([s, i]) => s === state.selected[0] && i === state.selected[1]) : -1;
  const [s, i] = all[(now < 0 && by < 0 ? all.length - 1 : now + by + all.length) % all.length];
  select(s, i, true);
}

const changed = scene.sides.flatMap((side, s) => side.nodes.flatMap((node, i) => node.change ? [[s, i]] : []));

// ---- Search ----

let texts = null;

function search(query) {
  texts ??= scene.sides.flatMap((side, s) => {
    const all = side.nodes.map((node, i) => [s, i, [node.name, node.title, node.op, node.shape, scene.strings[node.opName], scene.strings[node.file] + ":" + node.line].join("\n").toLowerCase(), node.name]);
    return all.concat(side.names.map(([name, i]) => [s, i, name.toLowerCase(), name]));
  });
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? texts.filter(([, , text]) => words.every((word) => text.includes(word))) : [];
  // The name itself comes first, then names that begin so.
  const rank = ([, , , name]) => name === query ? 0 : name.startsWith(query) ? 1 : 2;
  return found.map((hit, i) => [rank(hit), i, hit]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((one) => one[2]);
}

function showHits(query) {
  state.query = query;
  state.hits = search(query);
  state.hit = -1;
  byId("found").textContent = query ? `${state.hits.length} found` : "";
  const hits = byId("hits");
  hits.replaceChildren();
  hits.hidden = !state.hits.length;
  state.hits.slice(0, 100).forEach(([s, i, , name], n) => {
    const node = scene.sides[s].nodes[i];
    const line = html(hits, "li");
    html(line, "span", "%" + name + " ");
    const inside = name === node.name ? `${node.title} ${node.shape}` : `in %${node.name}`;
    html(line, "small", [scene.sides[s].title, inside, scene.strings[node.opName]].filter(Boolean).join(" · "));
    line.addEventListener("click", () => goTo(n));
  });
}

function goTo(n) {
  if (!state.hits.length) return;
  state.hit = (n + state.hits.length) % state.hits.length;
  const [s, i] = state.hits[state.hit];
  byId("found").textContent = `${state.hit + 1} of ${state.hits.length}`;
  [...byId("hits").children].forEach((line, k) => line.setAttribute("aria-selected", k === state.hit));
  select(s, i, true);
}

// ---- Keys ----

function openMore() {
  let things = state.drawn.size;
  scene.sides.forEach((side) => {
    const shut = side.boxes.map((_, i) => i).filter((i) => !side.open.has(i) && (side.boxes[i].parent === null || side.open.has(side.boxes[i].parent)));
    for (const box of shut) {
      things += side.index[box].nodes.length + side.index[box].boxes.length;
      if (things > MOST) break;
      side.open.add(box);
      forget(side, box);
    }
  });
  redraw();
}

function closeAll() {
  scene.sides.forEach((side) => {
    side.open = new Set(side.roots.slice(0, 1));
    side.cache.clear();
  });
  redraw();
  start();
}

/** Opens or closes the box around the selected instruction. */
function toggleSelected() {
  if (!state.selected) return;
  const [s, i] = state.selected, side = scene.sides[s];
  const box = side.nodes[i].box;
  if (side.boxes[box].parent === null) return;
  toggle(s, box);
}

/** Goes along an edge of the selected instruction. */
function follow(down) {
  if (!state.selected) { if (scene.sides[0].nodes.length) select(0, 0, true); return; }
  const [s, i] = state.selected;
  const edge = scene.sides[s].edges.find((edge) => edge[down ? 0 : 1] === i);
  if (edge) select(s, edge[down ? 1 : 0], true);
}

const KEYS = [
  ["/", "search", () => byId("search").focus()],
  ["n", "next one found", () => goTo(state.hit + 1)],
  ["N", "the one found before", () => goTo(state.hit - 1)],
  ["j", "to the first user of the selected instruction", () => follow(true)],
  ["k", "to its first operand", () => follow(false)],
  ["m", "next changed instruction", () => step(changed, 1)],
  ["M", "the changed instruction before", () => step(changed, -1)],
  ["o", "open or close the box around the selected instruction", toggleSelected],
  ["O", "open the boxes that are drawn, one step deeper", openMore],
  ["C", "close all boxes", closeAll],
  ["0", "show all", fit],
  ["c", "move the selected instruction into the middle", () => state.selected && center(...state.selected)],
  ["+", "closer", () => svg.call(zoomer.scaleBy, 1.25)],
  ["-", "farther", () => svg.call(zoomer.scaleBy, 0.8)],
  ["ArrowLeft", "move", () => pan(80, 0)],
  ["ArrowRight", "move", () => pan(-80, 0)],
  ["ArrowUp", "move", () => pan(0, 80)],
  ["ArrowDown", "move", () => pan(0, -80)],
  ["?", "what the picture means, and the keys", () => byId("help").showModal()],
  ["Escape", "select nothing, leave the search", () => { byId("hits").hidden = true; select(null); }],
];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.target === byId("search")) {
    if (event.key === "Enter") { event.preventDefault(); goTo(state.hit + (event.shiftKey ? -1 : 1)); }
    if (event.key === "Escape") { byId("hits").hidden = true; byId("search").blur(); }
    if (event.key === "ArrowDown") { event.preventDefault(); goTo(state.hit + 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); goTo(state.hit - 1); }
    return;
  }
  if (event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  const key = event.key === "=" ? "+" : event.key;
  const found = KEYS.find(([name]) => name === key);
  if (found) { event.preventDefault(); found[2](); }
});

// ---- The legend ----

function legend() {
  const box = byId("legend");
  const base = { name: "", title: "", shape: "", bytes: 1, padded: 1 };
  const rows = [
    ["elementwise", {}, "computes element by element"], ["reduction", {}, "reduces, scans, sorts, moves windows"],
    ["contraction", {}, "dot or convolution: a second line within"], ["moves", {}, "moves data in memory: woven"],
    ["exchanges", {}, "between devices: woven, with a second line"], ["free", {}, "another name, or not stored: dashed"],
    ["control", {}, "calls, loops, branches, tuples"], ["input", {}, "parameter that is a large array"],
    ["elementwise", { isPadded: true, bytes: 1, padded: 4 }, "padded: the bar shows the part that is used"],
    ["elementwise", { result: true }, "result of its computation: a line around it"],
    ["elementwise", { change: "added" }, "new after the optimisation"], ["elementwise", { change: "removed" }, "removed by it: dashed ring"],
    ["elementwise", { change: "edited" }, "same name, other operands or shape: dotted ring"],
  ];
  const side = { nodes: rows.map(([kind, more]) => ({ ...base, kind, title: kind, ...more })), edges: [], open: new Set(), boxes: [] };
  const held = scene.sides, known = state.things.length;
  const { drawn, frames, things } = state;
  state.drawn = new Map(); state.frames = new Map(); scene.sides = [side];
  rows.forEach(([, , words], i) => {
    const [x, y] = [8 + (i % 2) * 365, 10 + Math.floor(i / 2) * 40];
    const node = side.nodes[i];
    const group = make(box, "g", { transform: `translate(${x},${y}) scale(.8)` });
    node.inlined = []; node.marks = [];
    node.legend = true;
    drawNode(group, 0, i, { x: 0, y: 0, width: 92, height: node.isPadded ? 34 : 28 });
    make(box, "text", { x: x + 86, y: y + 14, style: "font-family:system-ui" }, words);
  });
  const y = 10 + Math.ceil(rows.length / 2) * 40;
  [[1, false, "a value; the more bytes, the wider"], [4, true, "a large array, read from memory: two heads"]].forEach(([width, large, words], i) => {
    const x = 8 + i * 365;
    drawEdge(box, 0, { points: [{ x: x + 36, y }, { x: x + 36, y: y + 30 }], width, large, edges: [], to: "n0" });
    make(box, "text", { x: x + 86, y: y + 18, style: "font-family:system-ui" }, words);
  });
  box.setAttribute("viewBox", `0 0 740 ${y + 40}`);
  Object.assign(state, { drawn, frames, things: things.slice(0, known) }); scene.sides = held;
  const keys = byId("keys");
  const said = new Map();
  for (const [key, words] of KEYS) said.set(words, [...(said.get(words) || []), key.replace("Arrow", "")]);
  for (const [words, all] of said) { html(keys, "dt", all.join(" ")); html(keys, "dd", words); }
}

// ---- Start ----

scene.sides.forEach((side) => { prepare(side); openSome(side, BUDGET / scene.sides.length); });
defs(byId("picture"));
make(byId("picture"), "g", { id: "world" });
byId("title").textContent = scene.title;
byId("subtitle").textContent = scene.subtitle + (scene.weights ? ` · coloured by ${scene.weights}` : "");
byId("heading").title = scene.title + " · " + scene.subtitle;
svg.call(zoomer).on("dblclick.zoom", null).on("click", () => { byId("hits").hidden = true; select(null); });
byId("fit").addEventListener("click", fit);
byId("open").addEventListener("click", openMore);
byId("close").addEventListener("click", closeAll);
byId("key").addEventListener("click", () => byId("help").showModal());
byId("next").hidden = !changed.length;
byId("next").addEventListener("click", () => step(changed, 1));
byId("search").addEventListener("input", (event) => showHits(event.target.value.trim()));
byId("search").addEventListener("focus", () => { byId("hits").hidden = !state.hits.length; });
redraw();
panel();
start();
legend();
document.body.dataset.ready = "yes";
