// The workers: one answers, and a spare is loaded already for when that one is stopped.

// A worker of a blob has the page's content policy; one of a file would have none.
function made() {
  const source = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return new Worker(url, { type: "module" });
}

export class Workers {
  // `ready` is called with seconds when the first worker is ready and after each stop, `failed` with why it is not.
  constructor(ready, failed) {
    this.ready = ready;
    this.failed = failed;
    this.spare = null;
    this.waiting = null;
    this.number = 0;
    this.current = this.load();
  }

  get isReady() {
    return this.current.isReady;
  }

  load() {
    const began = performance.now();
    const one = { worker: made(), isReady: false };
    one.worker.onmessage = ({ data }) => {
      if (data.failed !== undefined) this.failed(data.failed);
      else if (data.ready) {
        one.isReady = true;
        if (one === this.current) this.ready((performance.now() - began) / 1000);
        // Not before: two that load at once would take twice as long each.
        this.spare ??= this.load();
      } else if (this.waiting?.id === data.id) {
        if (data.progress !== undefined) this.waiting.progress(data.progress);
        else {
          const { answer } = this.waiting;
          this.waiting = null;
          answer(data.answer);
        }
      }
    };
    one.worker.onerror = (event) => this.failed(event.message ?? "the worker ended");
    return one;
  }

  // Gives the answer to a question; `progress` is called with texts before it.
  ask(question, progress) {
    const id = ++this.number;
    return new Promise((answer, refuse) => {
      this.waiting = { id, answer, refuse, progress };
      this.current.worker.postMessage({ id, question });
    });
  }

  // Ends what runs, wherever it stands.
  stop() {
    this.current.worker.terminate();
    this.current = this.spare ?? this.load();
    this.spare = null;
    if (this.current.isReady) this.spare = this.load();
    const waiting = this.waiting;
    this.waiting = null;
    waiting?.refuse(new Error("Stopped."));
  }
}
