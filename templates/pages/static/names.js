"use strict";
// Ids to the names that people know. An id that nobody bears is shown as it is.

export function namesOf(state) {
  const users = new Map(state.users.map((user) => [user.id, user]));
  const channels = new Map(state.channels.map((channel) => [channel.id, channel]));
  return {
    user: (id, label) => users.get(id)?.real_name ?? label ?? id,
    channel: (id, label) => channels.get(id)?.name ?? label ?? id,
    group: (id) => (id === "S0REVIEWERS" ? "reviewers" : id),
    person: (id) => users.get(id) ?? { id, name: id, real_name: id, role: "unknown", title: "" },
    bot: () => state.users.find((user) => user.role === "bot"),
    everyone: () => state.users.filter((user) => user.role !== "bot"),
  };
}
