// Runs a Python script in Pyodide, in Node: node run.mjs PYODIDE ARCHIVE SCRIPT.  What the script prints is printed.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, archive, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(readFileSync(archive)), "zip", { extractDir: "/lib/python3.14/site-packages" });
try {
  python.runPython(readFileSync(script, "utf8"));
} catch (error) {
  // Without it Node prints the whole of Pyodide, which is one line.
  console.error(error.message);
  process.exitCode = 1;
}
