// Keeps the memory of a Python that has imported toolrt and answered once: node snapshot.mjs PYODIDE ARCHIVE WARM TARGET.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [pyodide, archive, warm, target] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({ _makeSnapshot: true });
python.unpackArchive(new Uint8Array(readFileSync(archive)), "zip", { extractDir: "/lib/python3.14/site-packages" });
try {
  python.runPython(readFileSync(warm, "utf8"));
  writeFileSync(target, gzipSync(python.makeMemorySnapshot(), { level: 9 }));
} catch (error) {
  // Without it Node prints the whole of Pyodide, which is one line.
  console.error(error.message);
  process.exitCode = 1;
}
