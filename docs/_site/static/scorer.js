// What the search shows first: a page that says how it is comes before a record of why it was decided.
var Scorer = {
  score: ([name, , , , score]) => (name.startsWith("decisions/") ? score / 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
