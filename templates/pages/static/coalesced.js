"use strict";

/** Run `work` one at a time: calls during a run are answered together by one more run after it. */
export function coalesced(work) {
  let running = null;
  let again = false;
  const run = async () => {
    try {
      do {
        again = false;
        await work();
      } while (again);
    } finally {
      running = null;
    }
  };
  return () => {
    if (running) again = true;
    else running = run();
    return running;
  };
}
