"use strict";
/* Other hours, prices, rates and choices than the plan's. Every bill is linear in them, and Python
   wrote its three pieces (templates/page/pieces.py): nothing is predicted or priced again here. */
const whatIf = (() => {
  const usd = (pieces, s) => {
    const [fixed, timed, priced] = pieces.map(Number);
    return fixed + s.hours * (timed + s.price * priced);
  };
  const missing = (needs, s) => Object.keys(needs)
    .find((kind) => s[kind] && needs[kind].some((name) => !s[kind].includes(name))) || null;
  const wayOf = (option, today, s) => {
    const [low, mid, high] = option.usd.map((piece) => usd(piece, s));
    const out = missing(option.needs, s);
    const open = today !== null && out === null;
    const once = option.work_h * s.rate + Number(option.move_usd);
    return { id: option.id, out, low, mid, high, weak: option.weak, leaves: option.leaves,
      saves: open ? today - mid : null,
      net: open ? (today - high) * Number(option.periods) - once : null };
  };
  const bestOf = (ways) => ways.filter((way) => way.net > 0 && !way.weak)
    .reduce((best, way) => (best && best.net >= way.net ? best : way), null);
  /* The plan's advice while it leaves as much of the best as in the plan; null: as today. */
  const adviceOf = (job, ways, planned) => {
    const [best, before] = [bestOf(ways), bestOf(planned)];
    if (job.advice === null) return before ? null : best;
    const of = (all) => all.find((way) => way.id === job.advice);
    const [mine, was] = [of(ways), of(planned)];
    if (mine.out || (was.net > 0 && mine.net <= 0)) return best;
    if (!best || mine.net === null || !(was.net > 0) || !before) return mine;
    return best.net * was.net > mine.net * before.net ? best : mine;
  };
  return (table, s) => {
    const asPlanned = { hours: 1, price: 1, rate: table.rate };
    const today = (job, at) => (job.today ? usd(job.today, at) : null);
    const ways = (job, at) => job.options.map((option) => wayOf(option, today(job, at), at));
    const jobs = table.jobs.map((job) => {
      const all = ways(job, s);
      return { name: job.name, today: today(job, s), ways: all,
        ended: job.ended ? usd(job.ended, s) : null,
        own: adviceOf(job, all, ways(job, asPlanned)) };
    });
    /* Who would leave neighbours on a machine behind stays with them. */
    const leaving = new Set(jobs.keys());
    jobs.forEach((job, at) => {
      if (job.ended === null && (!job.own || !job.own.leaves)) leaving.delete(at);
    });
    table.jobs.forEach((job, at) => {
      if (leaving.has(at) && !job.must && job.beside.some((other) => !leaving.has(other)))
        jobs[at].own = null;
    });
    jobs.forEach((job) => {
      job.usd = job.ended !== null ? [job.ended, job.ended, job.ended]
        : job.own ? [job.own.low, job.own.mid, job.own.high]
        : job.today === null ? null : [job.today, job.today, job.today];
      job.shares = false;
    });
    const costs = [];
    const placements = [];
    for (const group of table.groups) {
      const singly = group.jobs.map((at) => jobs[at].usd);
      const together = group.usd.map((piece) => usd(piece, s));
      const sum = singly.reduce((total, own) => (own ? total + own[1] : NaN), 0);
      if (missing(group.needs, s) || !(together[1] < sum)) continue;
      group.jobs.forEach((at) => { jobs[at].shares = true; });
      placements.push(...group.placements);
      costs.push(together);
    }
    for (const job of jobs) if (!job.shares && job.usd) costs.push(job.usd);
    const total = (at) => costs.reduce((sum, cost) => sum + cost[at], 0);
    return { jobs, placements, low: total(0), mid: total(1), high: total(2),
      today: jobs.reduce((sum, job) => sum + (job.today || 0), 0) };
  };
})();

const start = () => {
  const { table, words, period } = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const say = (english, fields = {}) =>
    (words[english] || english).replace(/\{(\w+)\}/g, (_, name) => fields[name]);
  const money = (amount) => {
    if (amount === null) return "";
    const digits = Math.abs(amount) < 10 ? 2 : 0;
    const text = Math.abs(amount).toLocaleString("en-US",
      { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return (amount < 0 ? "-$" : "$") + text;
  };
  const ticked = (name) => {
    const boxes = all(`input[name="${name}"]`);
    const kept = boxes.filter((box) => box.checked).map((box) => box.value);
    return kept.length === boxes.length ? null : kept;
  };
  const KINDS = ["provider", "purchase", "cure"];
  const SLIDERS = ["hours", "price", "rate"];
  const settings = () => ({
    hours: Number($("hours").value) / 100,
    price: 1 + Number($("price").value) / 100,
    rate: Number($("rate").value),
    ...Object.fromEntries(KINDS.map((kind) => [kind, ticked(kind)])),
  });
  const OUT = { provider: say("provider unticked"), purchase: say("purchase option unticked"),
    cure: say("needs a change that you have unticked") };
  const range = (way, prefix = "") => {
    const [low, mid, high] = [way.low, way.mid, way.high].map(money);
    return prefix || low === high ? prefix + mid : say("{mid} ({low} to {high})", { low, mid, high });
  };

  const showOptions = (found) => {
    for (const row of all("tr[data-option]")) {
      const job = found.jobs[Number(row.dataset.job)];
      const way = job.ways.find((other) => other.id === row.dataset.option);
      row.classList.toggle("out", way.out !== null);
      row.classList.toggle("chosen", !job.shares && job.own !== null && job.own.id === way.id);
      const cell = (name, text) => { row.querySelector(`.${name}`).textContent = text; };
      cell("cost", way.out ? OUT[way.out] : range(way, row.dataset.least ? say("at least ") : ""));
      cell("saves", money(way.saves));
      cell("net", money(way.net));
    }
  };
  const showAnswer = (found) => {
    const [job] = found.jobs;
    const fields = { today: money(found.today), total: range(found), period };
    $("answer").textContent = found.jobs.length > 1
      ? say("At these settings: {today} {period} today, {total} as advised.", fields)
      : say("At these settings: {today} {period} today, {total} as advised: {what}.",
        { ...fields, what: job.own ? job.own.id : say("keep as is") });
    $("hours-said").textContent = say("{share} % of today's", { share: $("hours").value });
    $("price-said").textContent = `${$("price").value > 0 ? "+" : ""}${$("price").value} %`;
    $("rate-said").textContent = say("${usd} an hour", { usd: $("rate").value });
  };
  const showMap = (found) => {
    for (const gpu of all("[data-placement]"))
      gpu.classList.toggle("off", !found.placements.includes(Number(gpu.dataset.placement)));
    const apart = table.groups.flatMap((group) => group.jobs)
      .filter((at) => !found.jobs[at].shares).map((at) => found.jobs[at].name);
    if ($("map-said")) $("map-said").textContent = apart.length === 0 ? ""
      : say("Greyed: at these settings {n} jobs do not share as planned: {jobs}.",
        { n: apart.length, jobs: apart.slice(0, 8).join(say(", ")) + (apart.length > 8 ? "..." : "") });
  };
  const show = () => {
    const found = whatIf(table, settings());
    showAnswer(found);
    showOptions(found);
    showMap(found);
  };

  /* The settings stand in the address, so that a link shows what its sender saw. */
  const keep = () => {
    const parts = SLIDERS.map((id) => [id, $(id).value]);
    for (const kind of KINDS) if (ticked(kind)) parts.push([kind, ticked(kind).join("~")]);
    history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  };
  const restore = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const id of SLIDERS) if (kept.has(id)) $(id).value = kept.get(id);
    for (const kind of KINDS) if (kept.has(kind))
      for (const box of all(`input[name="${kind}"]`))
        box.checked = kept.get(kind).split("~").includes(box.value);
  };

  const sort = (table, column, head) => {
    const down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const compare = (x, y) => (x !== "" && y !== "" && !isNaN(x) && !isNaN(y)
      ? x - y : x.localeCompare(y));
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b))));
  };
  const find = () => {
    const wanted = $("find").value.toLowerCase();
    const rows = [...$("jobs").tBodies[0].rows];
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    $("found").textContent = say("{n} of {all} jobs",
      { n: rows.filter((row) => !row.hidden).length, all: rows.length });
  };

  restore();
  all(".controls input").forEach((box) => box.addEventListener("input", () => { keep(); show(); }));
  if ($("jobs")) {
    all("#jobs th button").forEach((button, column) =>
      button.addEventListener("click", () => sort($("jobs"), column, button.parentElement)));
    $("find").addEventListener("input", find);
  }
  /* What is folded on the screen is printed. */
  const unfold = (open) => all("details").forEach((folded) => { folded.open = open; });
  addEventListener("beforeprint", () => unfold(true));
  addEventListener("afterprint", () => unfold(false));
  show();
};
if (typeof module !== "undefined") module.exports = whatIf; else start();
