// A simulation as a film: what is on the links, where the messages are and which stage runs, at any moment.

/** Index of the last entry with time <= t; -1: none. Entries are sorted by `time`. */
export function lastBefore(list, t, time = (entry) => entry[0]) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(list[middle]) <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export class Film {
  constructor(movie) {
    this.movie = movie;
    this.seconds = movie.seconds;
    // Loads by link, in time.
    this.loads = movie.links.map(() => []);
    for (const load of movie.loads) this.loads[load[1]].push(load);
    for (const list of this.loads) list.sort((a, b) => a[0] - b[0]);
    this.flows = [...movie.flows].sort((a, b) => a[5] - b[5]);
  }

  /** Links at time t: {link, flows, senders, excess} of those that carry anything. */
  at(t) {
    const out = [];
    this.movie.links.forEach((link, index) => {
      const list = this.loads[index];
      const i = lastBefore(list, t);
      if (i < 0 || list[i][2] === 0) return;
      const [, , flows, senders] = list[i];
      out.push({ link, flows, senders, excess: Math.max(0, senders - link.incast_threshold) });
    });
    return out;
  }

  /** Messages whose bytes are on their way at time t: {from, to, chunk, share}. */
  messages(t, most = 400) {
    const out = [];
    for (const [from, to, chunk, , , flowing, end] of this.flows) {
      if (flowing > t) break;
      if (end > t && out.length < most) out.push({ from, to, chunk, share: (t - flowing) / (end - flowing) });
    }
    return out;
  }

  /** The stages that run at time t. */
  stages(t) {
    return this.movie.stages.filter((s) => s.begin <= t && t <= s.end);
  }

  /** When the next stage begins, or (with -1) the one before; without one the end or the beginning of all. */
  begin(t, direction) {
    const times = this.movie.stages.map((s) => s.begin);
    const least = 1e-6 * this.seconds; // of a stage that is shown
    return direction > 0 ? Math.min(this.seconds, ...times.filter((time) => time > t + least))
      : Math.max(0, ...times.filter((time) => time < t - least));
  }

  /** The hop of the critical path at time t: {rank, from, ...}; undefined: none is known. */
  hop(t) {
    const hops = this.movie.hops ?? [];
    const found = hops.find((h) => h[5] <= t && t <= h[7]);
    return found && { isMessage: found[0], from: found[1], rank: found[2], chunk: found[3], step: found[4] };
  }
}
