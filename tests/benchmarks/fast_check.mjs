// How many executions a second fast-check's scheduler makes of the lost update: a neighbour to compare with.
//
// Run it where `npm install fast-check` was run:  node fast_check.mjs [tasks] [rounds] [executions]
// It prints one line of JSON.  Each task reads a shared number, lets others go first, and writes it, so many rounds.

import { createRequire } from "node:module";
import { join } from "node:path";

const fc = createRequire(join(process.cwd(), "package.json"))("fast-check");
const [tasks, rounds, executions] = process.argv.slice(2).map(Number);

const outcomes = new Map();

async function lostUpdate(scheduler) {
  let shared = 0;
  async function add() {
    await scheduler.schedule(Promise.resolve()); // a Trio task begins when it is scheduled, too
    for (let round = 0; round < rounds; round++) {
      const seen = shared;
      await scheduler.schedule(Promise.resolve());
      shared = seen + 1;
    }
  }
  const running = Array.from({ length: tasks }, add);
  await scheduler.waitFor(Promise.all(running));
  outcomes.set(shared, (outcomes.get(shared) ?? 0) + 1);
  return true;
}

async function run(count) {
  const began = performance.now();
  await fc.assert(fc.asyncProperty(fc.scheduler(), lostUpdate), { numRuns: count, seed: 1 });
  return count / ((performance.now() - began) / 1000);
}

await run(Math.min(executions, 2000));
outcomes.clear();
const rate = await run(executions);
console.log(JSON.stringify({ rate, outcomes: Object.fromEntries(outcomes) }));
