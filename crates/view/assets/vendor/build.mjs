// Bundles entry.js with what it imports into vendor.min.js, under the licences of all packages.
import { buildSync } from "esbuild";
import { readFileSync, readdirSync, existsSync } from "node:fs";

const folders = ["node_modules/@dagrejs", "node_modules"].flatMap((parent) =>
  readdirSync(parent).filter((name) => parent.includes("@") || name.startsWith("d3-")).map((name) => `${parent}/${name}`));
const licences = folders.sort().filter((folder) => existsSync(`${folder}/package.json`)).map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
});
const banner = `/*!\n${licences.join("\n---\n\n").replaceAll("*/", "* /")}*/`;
buildSync({ entryPoints: ["entry.js"], bundle: true, minify: true, format: "iife", globalName: "vendor", legalComments: "none", banner: { js: banner }, outfile: "vendor.min.js" });
