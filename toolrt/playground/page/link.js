// A link holds all of a program in its fragment, which browsers send to no server.

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function addressOf(state) {
  const packed = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  const letters = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  const fragment = letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${location.href.split("#")[0]}#program=${fragment}`;
}

// Gives what a fragment holds; null: it holds no program.
export async function stateIn(fragment) {
  const found = /^#program=([\w-]+)$/.exec(fragment);
  if (!found) return null;
  try {
    const letters = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))));
    return typeof state.source === "string" ? state : null;
  } catch {
    return null;
  }
}
