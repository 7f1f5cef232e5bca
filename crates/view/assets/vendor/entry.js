// What the page takes from npm; README.md says how this becomes vendor.min.js.
export { Graph, layout } from "@dagrejs/dagre";
export { select } from "d3-selection";
export { zoom, zoomIdentity } from "d3-zoom";
