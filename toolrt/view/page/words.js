// Words that a newcomer may not know: marked where they stand, explained in a list.
toolrt.Words = class Words {
  // `words` are lists of a word, the forms in which texts have it, and its meaning.
  constructor(words) {
    this.words = (words || []).map(([word, forms, meaning], place) => ({ word, meaning, id: `word${place}`, forms: forms.split("|").map((form) => form.toLowerCase()) }));
    const every = this.words.flatMap(({ forms }) => forms).sort((one, other) => other.length - one.length);
    this.pattern = every.length ? new RegExp(`\\b(${every.map((form) => form.replace(/[^\w ]/g, "\\$&")).join("|")})\\b`, "gi") : null;
  }

  // The text in pieces, each word at its first place as a link to its meaning.
  marked(text) {
    const told = new Set();
    if (!this.pattern) return [text];
    return text.split(this.pattern).map((piece, place) => {
      const word = place % 2 ? this.words.find(({ forms }) => forms.includes(piece.toLowerCase())) : undefined;
      if (!word || told.has(word)) return piece;
      told.add(word);
      return toolrt.element("a", { class: "word", href: `#${word.id}`, "data-means": `${word.word}: ${word.meaning}`, "aria-describedby": word.id, onclick: () => { document.getElementById("glossary").open = true; } }, piece);
    });
  }

  list(host, holder) {
    const { element } = toolrt;
    holder.hidden = !this.words.length;
    host.replaceChildren(...this.words.flatMap(({ word, meaning, id }) => [element("dt", {}, word), element("dd", { id }, meaning)]));
  }
};
