// Python, in a worker: it answers questions about programs, one at a time.
import createPyodideModule from "./pyodide/pyodide.asm.mjs";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (name) => new URL(name, import.meta.url).href;

async function fetched(name) {
  const response = await fetch(here(name));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response;
}

// The memory of a Python that has imported everything: it was kept when the site was built.
async function snapshot() {
  const packed = (await fetched("warm.bin")).body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

async function begin() {
  const [memory, archive] = await Promise.all([
    snapshot(),
    fetched("python.zip").then((response) => response.arrayBuffer()),
  ]);
  // Pyodide takes a snapshot as large as its memory is at first; this one needs more.
  const grown = (settings) => {
    const instantiate = settings.instantiateWasm;
    settings.instantiateWasm = (imports, done) =>
      instantiate(imports, (instance, module) => {
        const held = instance.exports.memory;
        held.grow(Math.max(0, Math.ceil((memory.length - held.buffer.byteLength) / 65536)));
        done(instance, module);
      });
    return createPyodideModule(settings);
  };
  const python = await loadPyodide({ _loadSnapshot: memory, createPyodideModule: grown });
  // Files are no part of the snapshot.
  python.unpackArchive(new Uint8Array(archive), "zip", { extractDir: "/lib/python3.14/site-packages" });
  python.runPython("import importlib; importlib.invalidate_caches()");
  // A program asks for nothing: the content policy allows this site alone, and this takes even that.
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport", "caches", "indexedDB"]) {
    Object.defineProperty(self, name, { value: undefined });
  }
  // There is nothing to be read: `input()` says so.
  python.setStdin({ stdin: () => null });
  const session = python.globals.get("session");
  self.onmessage = ({ data: { id, question } }) => {
    const answer = session.answer(question, (progress) => self.postMessage({ id, progress }));
    self.postMessage({ id, answer });
  };
  self.postMessage({ ready: true });
}

begin().catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
