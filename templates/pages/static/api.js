"use strict";
// The page's two JSON interfaces: the workspace (state, clicks, commands) and the world around it.

/** A refusal or a dead server, with a sentence for the person. */
export class Unreachable extends Error {}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Unreachable("The sandbox does not answer. Is `signoff demo` still running?");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) {
    throw new Unreachable(body?.error ?? `The sandbox answered ${response.status} to ${path}.`);
  }
  return body;
}

export function get(path) {
  return answer(path);
}

export function post(path, body) {
  return answer(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Call `changed` at each change of the workspace, and `lost(true|false)` as the line goes and comes. */
export function listen(changed, lost) {
  const events = new EventSource("/sandbox/events");
  events.addEventListener("open", () => {
    lost(false);
    changed();
  });
  events.addEventListener("message", changed);
  events.addEventListener("error", () => lost(true));
  return events;
}
