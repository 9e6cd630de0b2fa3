// Bundles the editor with CodeMirror into one file: node bundle.mjs NODE_MODULES TARGET.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [modules, target] = process.argv.slice(2);
const { build } = createRequire(`${modules}/`)("esbuild");
await build({
  entryPoints: [fileURLToPath(new URL("editor.js", import.meta.url))],
  nodePaths: [modules],
  outfile: target,
  bundle: true,
  minify: true,
  format: "esm",
  logLevel: "warning",
});
