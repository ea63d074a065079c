"use strict";
/* What a plan would cost at other hours, prices, rates and choices: the same arithmetic as
   planner/documents/what_if, exact in whole numbers, so that both agree to the cent.
   An amount is a pair of BigInts, the lower one a power of ten; nothing here is a float. */
const whatIf = (() => {
  const NAMES = ["low", "mid", "high", "saves", "net"];
  const ZERO = [0n, 1n];
  const read = new Map();
  const amount = (text) => {
    if (!read.has(text)) {
      const [whole, part = ""] = text.replace("-", "").split(".");
      const top = BigInt(whole + part);
      read.set(text, [text.startsWith("-") ? -top : top, 10n ** BigInt(part.length)]);
    }
    return read.get(text);
  };
  const plus = (a, b) => {
    if (a[1] < b[1]) return plus(b, a);
    return [a[0] + b[0] * (a[1] / b[1]), a[1]];
  };
  const minus = (a, b) => plus(a, [-b[0], b[1]]);
  const times = (a, b) => [a[0] * b[0], a[1] * b[1]];
  const above = (a, b) => a[0] * b[1] > b[0] * a[1];
  const sum = (all) => all.reduce(plus, ZERO);
  const cents = ([top, bottom]) => {
    const size = top < 0n ? -top : top;
    const whole = (size * 200n + bottom) / (bottom * 2n);
    return Number(top < 0n ? -whole : whole);
  };
  const BILLION = 10n ** 9n;
  /* A quotient to a billionth, half up, away from zero, so that sums of many stay short. */
  const quotient = ([top, bottom], [by, under]) => {
    const negative = (top < 0n) !== (by < 0n);
    const [up, down] = [top * under * BILLION, bottom * by].map((one) => (one < 0n ? -one : one));
    const whole = (up * 2n + down) / (down * 2n);
    return [negative ? -whole : whole, BILLION];
  };
  const end = (given, fixed, after, before) => {
    const timed = minus(given, fixed);
    if (timed[0] <= 0n || before[0] === 0n) return given;
    return plus(fixed, quotient(times(timed, after), before));
  };
  const out = (option, asked) => {
    if (asked.providers !== null && !asked.providers.includes(option.provider)) return "provider";
    if (asked.purchases !== null && !asked.purchases.includes(option.purchase)) return "purchase";
    if (asked.cures !== null && option.cures.some((code) => !asked.cures.includes(code)))
      return "cure";
    return null;
  };
  const share = (percent) => [BigInt(percent), 100n];
  /* Low end, expected and high end of bills, each on today's machine or another. */
  const ends = (bills, low, high, asked) => {
    const total = (name) => sum(bills.map((one) => amount(one[name])));
    const [fixed, timed] = [total("fixed"), total("timed")];
    const price = (one) => share(one.here ? 100 : 100 + asked.price_percent);
    const compute = sum(bills.map((one) => times(amount(one.compute), price(one))));
    const before = plus(total("compute"), timed);
    const after = times(plus(compute, timed), share(asked.hours_percent));
    const [from, to] = [low, high].map((one) => end(amount(one), fixed, after, before));
    return [from, plus(fixed, after), to];
  };
  const once = (one, asked) =>
    plus(times(amount(one.effort), share(asked.rate_cents)), amount(one.moving));
  const wayOf = (option, today, asked) => {
    const [low, mid, high] = ends([option], option.low, option.high, asked);
    const why = out(option, asked);
    const known = today !== null && why === null;
    const spent = once(option, asked);
    return { id: option.id, out: why, low, mid, high, once: spent, leaves: !option.here,
      weak: option.weak, saves: known ? minus(today, mid) : null,
      net: known ? minus(times(minus(today, high), amount(option.periods)), spent) : null };
  };
  const bestOf = (ways) => {
    let best = null;
    for (const one of ways)
      if (one.net !== null && one.net[0] > 0n && !one.weak
        && (best === null || above(one.net, best.net))) best = one;
    return best;
  };
  /* The plan's advice while it is worth as much of the best as in the plan; null: leave it. */
  const advised = (job, ways) => {
    const best = bestOf(ways);
    const [advice, most] = [amount(job.worth.advice), amount(job.worth.best)];
    if (job.recommended === "o0") return most[0] <= 0n ? best : null;
    const mine = ways.find((one) => one.id === job.recommended);
    if (mine.out !== null) return best;
    if (mine.net === null || advice[0] <= 0n || best === null) return mine;
    return above(times(best.net, advice), times(mine.net, most)) ? best : mine;
  };
  /* Who would leave neighbours on a machine behind stays with them. */
  const together = (jobs, ways) => {
    const leaving = new Set(jobs.filter((_, at) => ways[at] !== null && ways[at].leaves)
      .map((job) => job.name));
    return jobs.map((job, at) => (ways[at] !== null && ways[at].leaves && !job.must
      && job.beside.some((name) => !leaving.has(name)) ? null : ways[at]));
  };
  const endsOf = ({ before, way }) => {
    if (way !== null) return [way.low, way.mid, way.high];
    return before === null ? null : [before, before, before];
  };
  const priced = (group, asked) => {
    let why = null;
    if (asked.providers !== null && group.providers.some((one) => !asked.providers.includes(one)))
      why = "provider";
    else if (asked.purchases !== null
      && group.purchases.some((one) => !asked.purchases.includes(one))) why = "purchase";
    return { cost: ends(group.bills, group.low, group.high, asked), once: once(group, asked), out: why };
  };
  /* All jobs, those of a group sharing where that costs less than each its own way. */
  const packedIn = (packing, groups, bills, alone) => {
    const packed = [];
    const shared = new Set();
    const costs = [];
    let spent = ZERO;
    groups.forEach((group, at) => {
      const singly = group.jobs.map((name) => endsOf(alone.get(name))).filter((one) => one !== null);
      if (bills[at].out !== null || singly.length < group.jobs.length
        || !above(sum(singly.map((one) => one[1])), bills[at].cost[1])) return;
      packed.push(at);
      group.jobs.forEach((name) => shared.add(name));
      costs.push(bills[at].cost);
      spent = plus(spent, bills[at].once);
    });
    for (const [name, one] of alone) {
      const own = endsOf(one);
      if (shared.has(name) || own === null) continue;
      costs.push(own);
      if (one.way !== null) spent = plus(spent, one.way.once);
    }
    return { packing, packed, once: spent, ends: [0, 1, 2].map((at) => sum(costs.map((c) => c[at]))) };
  };
  const wholeAnswer = (table, alone, asked) => {
    const before = sum([...alone.values()].map((one) => one.before || ZERO));
    const bills = table.packings.map((groups) => groups.map((group) => priced(group, asked)));
    const found = table.packings.map((groups, at) => packedIn(at, groups, bills[at], alone));
    const net = (one) =>
      minus(times(minus(before, one.ends[2]), amount(table.periods)), one.once);
    let best = found.length ? found[0] : packedIn(null, [], [], alone);
    for (const other of found.slice(1)) {
      const moved = other.packed.some((at) => table.packings[other.packing][at].away);
      if (moved && above(best.ends[1], other.ends[1]) && above(net(other), net(best))) best = other;
    }
    const [low, mid, high] = best.ends;
    return {
      today: cents(before),
      low: cents(low),
      total: cents(mid),
      high: cents(high),
      packed: best.packed.flatMap((at) => table.packings[best.packing][at].jobs)
        .sort((a, b) => compared(a, b)),
      packing: best.packed.length ? best.packing : null,
      groups: bills.map((groups, number) => groups.map((one, at) => ({
        packed: found[number].packed.includes(at), out: one.out,
        cost: one.out === null ? cents(one.cost[1]) : null }))),
    };
  };
  /* By code points, as Python sorts. */
  const compared = (a, b) => {
    const [x, y] = [[...a], [...b]].map((text) => text.map((sign) => sign.codePointAt(0)));
    for (let at = 0; at < Math.min(x.length, y.length); at += 1)
      if (x[at] !== y[at]) return x[at] - y[at];
    return x.length - y.length;
  };
  const shown = (way) => Object.fromEntries([["id", way.id], ["out", way.out],
    ...NAMES.map((name) => [name, way.out !== null || way[name] === null ? null : cents(way[name])])]);
  return (table, asked) => {
    const todays = table.jobs.map((job) => {
      if (job.today === null) return null;
      const timed = plus(amount(job.today.compute), amount(job.today.timed));
      return plus(amount(job.today.fixed), times(timed, share(asked.hours_percent)));
    });
    const ways = table.jobs.map((job, at) =>
      job.options.map((option) => wayOf(option, todays[at], asked)));
    const own = together(table.jobs, table.jobs.map((job, at) => advised(job, ways[at])));
    const alone = new Map(table.jobs.map((job, at) =>
      [job.name, { before: todays[at], way: own[at] }]));
    const found = wholeAnswer(table, alone, asked);
    const packed = new Set(found.packed);
    const id = (way) => (way === null ? "o0" : way.id);
    return { ...found, jobs: table.jobs.map((job, at) => ({
      name: job.name,
      today: todays[at] === null ? null : cents(todays[at]),
      best: id(bestOf(ways[at])),
      advice: id(own[at]),
      packed: packed.has(job.name),
      options: ways[at].map(shown),
    })) };
  };
})();
if (typeof module !== "undefined") module.exports = whatIf;
