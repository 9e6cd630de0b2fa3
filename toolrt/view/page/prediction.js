// A guess, asked for before what came is shown.  The first one is kept: in the browser where it keeps anything (a file of its
// own), else as long as the page is open (a sandboxed frame).
toolrt.Prediction = class Prediction {
  constructor({ question, guess, first, came }) {
    this.key = `toolrt.guess.${question}`;
    this.came = came;
    this.byId = (id) => document.getElementById(id);
    this.byId("question").textContent = question;
    this.byId("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const said = this.byId("guess").value.trim();
      if (said) this.show(said);
      else this.byId("came").textContent = "Your guess first: a wrong one teaches more than none.";
    });
    this.first = first === null ? this.kept() : first;
    if (guess !== null) this.show(guess);
    else if (this.first !== null) this.show(this.first);
  }

  kept() {
    try {
      return window.localStorage.getItem(this.key);
    } catch {
      return null; // A sandboxed frame, a private window.
    }
  }

  show(said) {
    if (this.first === null) {
      this.first = said;
      try {
        window.localStorage.setItem(this.key, said);
      } catch {
        // It lasts as long as the page.
      }
    }
    const right = said.toLowerCase() === this.came.toLowerCase();
    const before = this.first === said ? "" : ` Your first guess was ${this.first}.`;
    this.byId("guess").value = said;
    this.byId("came").textContent = right ? `✓ You said ${said}, and so it came.${before}` : `✗ You said ${said}. It came out as ${this.came}.${before}`;
    this.byId("came").className = right ? "right" : "broken";
  }
};

toolrt.prediction = new toolrt.Prediction(JSON.parse(document.getElementById("document").textContent));
