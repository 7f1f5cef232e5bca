// Lays out the open boxes of a picture. Each open box is a graph of its own, laid out by dagre; it is
// a node in the graph of the box around it. So a box that opens or closes changes the layouts around
// it alone.
"use strict";

// A box with more values across its border shows them as stubs at the things that they end at.
const MOST_PORTS = 12;
const SIZE = { char: 6.65, line: 14, pad: 7, head: 24, gap: 12, port: 1 };

/** Prepares a side of the scene: who is in which box, and which edges cross which border. */
function prepare(side) {
  const boxes = side.boxes.map(() => ({ nodes: [], boxes: [], inside: [], enters: [], leaves: [] }));
  side.index = boxes;
  side.roots = [];
  side.boxes.forEach((box, i) => {
    box.depth = box.parent === null ? 0 : side.boxes[box.parent].depth + 1;
    if (box.parent === null) side.roots.push(i); else boxes[box.parent].boxes.push(i);
  });
  side.nodes.forEach((node, i) => boxes[node.box].nodes.push(i));
  // Callees stand after callers, so a box is counted before the one around it.
  side.boxes.forEach((box, i) => { box.count = boxes[i].nodes.length; });
  for (let i = side.boxes.length - 1; i >= 0; i--) {
    const parent = side.boxes[i].parent;
    if (parent !== null) side.boxes[parent].count += side.boxes[i].count;
  }
  side.edges.forEach((edge, e) => {
    let a = side.nodes[edge[0]].box, b = side.nodes[edge[1]].box;
    while (a !== b) {
      const [da, db] = [a === null ? -1 : side.boxes[a].depth, b === null ? -1 : side.boxes[b].depth];
      if (da >= db && a !== null) { boxes[a].leaves.push(e); a = side.boxes[a].parent; }
      if (db > da || (db === da && b !== null)) { boxes[b].enters.push(e); b = side.boxes[b].parent; }
    }
    if (a !== null) boxes[a].inside.push(e);
  });
  side.cache = new Map();
  side.open = new Set();
}

/** The thing directly in a box that a node is in: the node itself or a box. */
function itemIn(side, frame, node) {
  let box = side.nodes[node].box;
  if (box === frame) return "n" + node;
  while (side.boxes[box].parent !== frame) box = side.boxes[box].parent;
  return "b" + box;
}

function textWidth(text) {
  let width = 0;
  for (const c of text) width += c.codePointAt(0) > 0x2e7f ? 2 : 1;
  return width * SIZE.char;
}

/** The lines of a node, with the class of each. */
function linesOf(node) {
  if (node.legend) return [[node.title, "title"]];
  const lines = [[node.title, "title"], ["%" + node.name, "faint"], [node.shape, "shape"]];
  for (const line of node.inlined || []) lines.push([line, "faint"]);
  for (const mark of node.marks || []) lines.push([mark, "mark"]);
  return lines;
}

function nodeSize(node) {
  if (node.size) return node.size;
  const lines = linesOf(node);
  let width = 60;
  for (const [text, kind] of lines) width = Math.max(width, textWidth(text) * (kind === "title" ? 1.06 : 1));
  const slant = node.kind === "reduction" ? 22 : node.kind === "input" ? 14 : 0;
  const bar = node.isPadded ? 9 : 0;
  node.size = { width: width + 2 * SIZE.pad + slant, height: lines.length * SIZE.line + 2 * SIZE.pad + bar };
  return node.size;
}

function closedSize(side, i) {
  const width = Math.max(...closedLines(side, i).map(textWidth));
  return { width: width + 4 * SIZE.pad, height: closedLines(side, i).length * SIZE.line + 2 * SIZE.pad };
}

function closedLines(side, i) {
  const box = side.boxes[i];
  const lines = ["▸ " + box.title];
  const owner = box.owner === null ? null : side.nodes[box.owner];
  if (owner && box.kind === "call") {
    lines[0] = "▸ " + owner.title;
    lines.push("%" + owner.name, owner.shape);
    for (const mark of owner.marks || []) lines.push(mark);
  }
  const changed = countChanges(side, i);
  lines.push(box.count + (box.count === 1 ? " instruction" : " instructions") + (changed ? ", " + changed + " changed" : ""));
  return lines;
}

/** How many nodes in a box are changed. */
function countChanges(side, i) {
  if (!side.changes) {
    side.changes = side.boxes.map(() => 0);
    side.nodes.forEach((node) => {
      if (node.change) for (let b = node.box; b !== null; b = side.boxes[b].parent) side.changes[b]++;
    });
  }
  return side.changes[i];
}

/** Lays out an open box: its things, edges and ports, at places relative to its own corner. */
function layoutBox(side, frame) {
  const known = side.cache.get(frame);
  if (known) return known;
  const { nodes, boxes, inside, enters, leaves } = side.index[frame];
  const graph = new vendor.Graph({ multigraph: true });
  const things = nodes.length + boxes.length;
  graph.setGraph({ ranksep: things > 60 ? 34 : 26, nodesep: 18, edgesep: 8, ranker: things > 40 ? "tight-tree" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = new Map();
  for (const n of nodes) graph.setNode("n" + n, { ...nodeSize(side.nodes[n]) });
  for (const b of boxes) {
    if (side.open.has(b)) {
      inner.set("b" + b, layoutBox(side, b));
      graph.setNode("b" + b, { width: inner.get("b" + b).width, height: inner.get("b" + b).height });
    } else graph.setNode("b" + b, closedSize(side, b));
  }
  const links = new Map();
  const link = (from, to, edge, fromPort, toPort) => {
    if (from === to) return;
    const [, , kind, text, width, large] = side.edges[edge];
    // The label stands once, outside of the boxes.
    const isShut = (item) => item[0] === "b" && !inner.has(item);
    const label = /^[io]/.test(from) || /^[io]/.test(to) || isShut(from) || isShut(to) ? "" : text;
    const name = (inner.get(from)?.bottom.has(fromPort) ? fromPort : "") + "|" + (inner.get(to)?.top.has(toPort) ? toPort : "") + "|" + (kind === "data" ? label : kind);
    const key = from + ">" + to + ">" + name;
    const old = links.get(key);
    if (old) { old.edges.push(edge); old.width = Math.max(old.width, width); old.large ||= large; return; }
    links.set(key, { from, to, name, kind, label, width, large, edges: [edge], fromPort, toPort });
    const longest = label ? textWidth(label) : 0;
    graph.setEdge(from, to, label ? { width: longest, height: 12, labelpos: "r", labeloffset: 5, weight: kind === "data" ? 1 : 2 } : {}, name);
  };
  for (const e of inside) {
    const [from, to] = side.edges[e];
    link(itemIn(side, frame, from), itemIn(side, frame, to), e, "p" + from, "p" + from);
  }
  const ports = { top: new Set(), bottom: new Set() };
  const stubs = { enters: new Map(), leaves: new Map() };
  const distinct = (edges) => new Set(edges.map((e) => side.edges[e][0])).size;
  const cross = (edges, isIn) => {
    const few = distinct(edges) <= MOST_PORTS;
    for (const e of edges) {
      const [from, to] = side.edges[e];
      const item = itemIn(side, frame, isIn ? to : from);
      if (!few) { const count = isIn ? stubs.enters : stubs.leaves; count.set(item, (count.get(item) || 0) + 1); continue; }
      const port = (isIn ? "i" : "o") + from, all = isIn ? ports.top : ports.bottom;
      if (!all.has(port)) { all.add(port); graph.setNode(port, { width: SIZE.port, height: SIZE.port }); }
      link(isIn ? port : item, isIn ? item : port, e, "p" + from, "p" + from);
    }
  };
  cross(enters, true);
  cross(leaves, false);
  pin(graph, ports);
  vendor.layout(graph);
  const result = collect(side, frame, graph, links, inner, ports);
  for (const item of result.items) { item.enters = stubs.enters.get(item.id); item.leaves = stubs.leaves.get(item.id); }
  side.cache.set(frame, result);
  return result;
}

/** Ties ports to the top and the bottom: values come in above and leave below. */
function pin(graph, ports) {
  const free = graph.nodes().filter((n) => /^[nb]/.test(n));
  if (ports.top.size) {
    const first = free.filter((n) => !(graph.predecessors(n) || []).length);
    graph.setNode("T", { width: 1, height: 1 });
    for (const port of ports.top) graph.setEdge("T", port, { weight: 20 }, "pin");
    for (const n of first) graph.setEdge("T", n, { weight: 0 }, "pin");
  }
  if (ports.bottom.size) {
    const last = free.filter((n) => !(graph.successors(n) || []).length);
    graph.setNode("B", { width: 1, height: 1 });
    for (const port of ports.bottom) graph.setEdge(port, "B", { weight: 20 }, "pin");
    for (const n of last) graph.setEdge(n, "B", { weight: 0 }, "pin");
  }
}

/** Takes what dagre found, with the trunks from the border to the ports. */
function collect(side, frame, graph, links, inner, ports) {
  const title = side.boxes[frame].title;
  let [left, top] = [0, Infinity];
  for (const n of graph.nodes()) {
    if (n === "T" || n === "B") continue;
    const { x, y, width, height } = graph.node(n);
    left = Math.min(left, x - width / 2);
    top = Math.min(top, y - height / 2);
  }
  for (const one of links.values()) for (const { x } of graph.edge(one.from, one.to, one.name).points) left = Math.min(left, x);
  const dx = SIZE.gap - left, dy = SIZE.head + SIZE.gap / 2 - (isFinite(top) ? top : 0);
  let [right, bottom] = [textWidth(title) + 40, 20];
  for (const n of graph.nodes()) {
    if (n === "T" || n === "B") continue;
    const { x, y, width, height } = graph.node(n);
    right = Math.max(right, x + width / 2 + dx + SIZE.gap);
    bottom = Math.max(bottom, y + height / 2 + dy + SIZE.gap);
  }
  const at = (n) => {
    const { x, y, width, height } = graph.node(n);
    return { x: x - width / 2 + dx, y: y - height / 2 + dy, width, height };
  };
  const result = { frame, items: [], edges: [], top: new Map(), bottom: new Map(), width: right, height: bottom };
  for (const n of graph.nodes()) {
    if (/^[nb]\d/.test(n)) result.items.push({ id: n, inner: inner.get(n), ...at(n) });
  }
  const rows = new Map();
  for (const n of graph.nodes()) {
    const { y, height } = graph.node(n), key = Math.round(y * 10);
    if (/^[nb]\d/.test(n)) rows.set(key, Math.max(rows.get(key) || 0, height));
  }
  // A line passes between the things of a row upright.
  const shifted = (points) => points.flatMap(({ x, y }, i) => {
    const height = rows.get(Math.round(y * 10)) || 0;
    if (i === 0 || i === points.length - 1 || height < 2) return [{ x: x + dx, y: y + dy }];
    const half = points[i - 1].y < y ? height / 2 : -height / 2;
    return [{ x: x + dx, y: y - half + dy }, { x: x + dx, y: y + half + dy }];
  });
  for (const port of ports.top) {
    const points = shifted(graph.edge("T", port, "pin").points);
    const x = points.length > 2 ? points[1].x : graph.node(port).x + dx;
    points[0] = { x, y: 0 };
    points[points.length - 1] = { x: graph.node(port).x + dx, y: graph.node(port).y + dy };
    result.top.set("p" + port.slice(1), x);
    result.edges.push({ points, trunk: "i" + port.slice(1), width: 1, edges: [] });
  }
  for (const port of ports.bottom) {
    const points = shifted(graph.edge(port, "B", "pin").points);
    const x = points.length > 2 ? points[points.length - 2].x : graph.node(port).x + dx;
    points[points.length - 1] = { x, y: bottom };
    points[0] = { x: graph.node(port).x + dx, y: graph.node(port).y + dy };
    result.bottom.set("p" + port.slice(1), x);
    result.edges.push({ points, trunk: "o" + port.slice(1), width: 1, edges: [] });
  }
  for (const one of links.values()) {
    const found = graph.edge(one.from, one.to, one.name);
    const points = shifted(found.points);
    const [from, to] = [at(one.from), at(one.to)];
    const up = points[0].y > points[points.length - 1].y;
    // An edge that dagre turned around starts at the top.
    const out = inner.get(one.from)?.bottom.get(one.fromPort), into = inner.get(one.to)?.top.get(one.toPort);
    if (!up) {
      const last = points.length - 1, bend = last > 1;
      const near = (box, x) => Math.min(Math.max(x, box.x + Math.min(14, box.width / 2)), box.x + box.width - Math.min(14, box.width / 2));
      const start = { x: near(from, bend ? points[1].x : to.x + to.width / 2), y: from.y + from.height };
      const end = { x: near(to, bend ? points[last - 1].x : from.x + from.width / 2), y: to.y };
      points[0] = start;
      points[last] = end;
      if (out !== undefined) points[0] = { x: from.x + out, y: from.y + from.height };
      if (into !== undefined) points[points.length - 1] = { x: to.x + into, y: to.y };
    }
    const label = found.x === undefined ? null : { x: found.x + dx, y: found.y + dy };
    for (const { x } of points) result.width = Math.max(result.width, x + SIZE.gap / 2);
    result.edges.push({ ...one, points, at: label });
  }
  // A trunk is as wide as the widest edge that it carries.
  for (const trunk of result.edges.filter((edge) => edge.trunk)) {
    for (const one of links.values()) {
      if (one.from === trunk.trunk || one.to === trunk.trunk) {
        trunk.width = Math.max(trunk.width, one.width); trunk.large ||= one.large; trunk.edges.push(...one.edges);
        trunk.kind ??= one.kind;
      }
    }
  }
  return result;
}

/** Forgets the layouts of a box and of those around it. */
function forget(side, frame) {
  for (let box = frame; box !== null; box = side.boxes[box].parent) side.cache.delete(box);
}
