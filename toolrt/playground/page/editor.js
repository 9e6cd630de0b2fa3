// The editor: CodeMirror, bundled by esbuild when the site is built.
import { python } from "@codemirror/lang-python";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { EditorView, basicSetup } from "codemirror";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "light-dark(#7a3e9d, #d3a5ee)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#00694f, #2cc79b)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#a03f00, #ff8a3c)" },
  { tag: tags.comment, color: "light-dark(#545b64, #a3abb5)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.className], color: "light-dark(#005f93, #56b4e9)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "14px" },
  ".cm-scroller": { fontFamily: "ui-monospace, monospace", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--soft)", border: "none" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#0072b211, #56b4e91a)" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)" },
});

// Gives an object with `text`.  The editor stands in a shadow tree, where its styles need no leave of the content policy.
export function editorIn(parent, changed, label = "Program") {
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    parent: root,
    root,
    extensions: [
      basicSetup,
      python(),
      theme,
      syntaxHighlighting(colours),
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
    ],
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
  };
}
