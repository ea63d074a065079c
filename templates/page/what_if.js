"use strict";
/* What a plan would cost at other hours, prices, rates and choices: the same arithmetic as
   planner/documents/what_if.py, exact in whole numbers, so that both agree to the cent.
   A fraction is a pair of BigInts; nothing here is a float. */
const whatIf = (() => {
  const NAMES = ["low", "mid", "high", "saves", "net"];
  const fraction = (text) => {
    const [whole, part = ""] = text.replace("-", "").split(".");
    const top = BigInt(whole + part);
    return [text.startsWith("-") ? -top : top, 10n ** BigInt(part.length)];
  };
  const plus = (a, b) => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
  const minus = (a, b) => plus(a, [-b[0], b[1]]);
  const times = (a, b) => [a[0] * b[0], a[1] * b[1]];
  const by = (a, b) => (b[0] < 0n ? [-a[0] * b[1], -a[1] * b[0]] : [a[0] * b[1], a[1] * b[0]]);
  const cents = ([top, bottom]) => {
    const size = top < 0n ? -top : top;
    const whole = (size * 200n + bottom) / (bottom * 2n);
    return Number(top < 0n ? -whole : whole);
  };
  const end = (given, fixed, grown) => {
    const above = minus(given, fixed);
    return above[0] <= 0n ? given : plus(fixed, times(above, grown));
  };
  const out = (option, asked) => {
    if (asked.providers !== null && !asked.providers.includes(option.provider)) return "provider";
    if (asked.purchases !== null && !asked.purchases.includes(option.purchase)) return "purchase";
    if (asked.cures !== null && option.cures.some((code) => !asked.cures.includes(code)))
      return "cure";
    return null;
  };
  const recomputed = (option, today, hours, asked) => {
    const found = { id: option.id, out: out(option, asked) };
    for (const name of NAMES) found[name] = null;
    if (found.out !== null) return found;
    const [compute, timed, fixed] = ["compute", "timed", "fixed"].map((n) => fraction(option[n]));
    const price = [BigInt(option.here ? 100 : 100 + asked.price_percent), 100n];
    const before = plus(compute, timed);
    const after = times(plus(times(compute, price), timed), hours);
    const mid = plus(fixed, after);
    const grown = before[0] === 0n ? [1n, 1n] : by(after, before);
    const high = end(fraction(option.high), fixed, grown);
    const work = times(fraction(option.effort), [BigInt(asked.rate_cents), 100n]);
    const once = plus(work, fraction(option.moving));
    found.low = cents(end(fraction(option.low), fixed, grown));
    found.mid = cents(mid);
    found.high = cents(high);
    if (today !== null) {
      found.saves = cents(minus(today, mid));
      found.net = cents(minus(times(minus(today, high), fraction(option.periods)), once));
    }
    return found;
  };
  const answer = (job, asked) => {
    const hours = [BigInt(asked.hours_percent), 100n];
    let today = null;
    if (job.today !== null) {
      const timed = plus(fraction(job.today.compute), fraction(job.today.timed));
      today = plus(fraction(job.today.fixed), times(timed, hours));
    }
    const options = job.options.map((option) => recomputed(option, today, hours, asked));
    let best = null;
    for (const one of options)
      if (one.net !== null && one.net > 0 && (best === null || one.net > best.net)) best = one;
    return {
      name: job.name,
      today: today === null ? null : cents(today),
      best: best === null ? "o0" : best.id,
      options,
    };
  };
  return (table, asked) => {
    const jobs = table.jobs.map((job) => answer(job, asked));
    const known = jobs.filter((job) => job.today !== null);
    const taken = (job) => {
      const one = job.options.find((option) => option.id === job.best);
      return one ? one.mid : job.today;
    };
    return {
      today: known.reduce((sum, job) => sum + job.today, 0),
      best: known.reduce((sum, job) => sum + taken(job), 0),
      jobs,
    };
  };
})();
if (typeof module !== "undefined") module.exports = whatIf;
