const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0), sum = (a) => a.reduce((x, y) => x + y, 0);
const between = (x, low, high) => Math.min(Math.max(x, low), high), clip = (x, reach) => between(x, -reach, reach);
exports.standardised = ({ share, mean, variance, level, reach }, x) => {
  const levels = x.map((v, i) => Math.max(level[i], v === 0 || v === 1 ? 0 : v > 0 && v < 1 ? 1 : 2));
  const scaled = (z, i) => (z && (z * Math.sqrt(share)) / Math.sqrt(variance[i] + (1 - share) * z * z));
  return x.map((v, i) => (levels[i] > 0 && levels.includes(2) ? clip(scaled(v - mean[i], i), reach) : v));
};
exports.average = (f, k, value, powers = k[f.kernel].map((v) => v ** f.power)) =>
  [dot(f.sums, powers) / (f.little + dot(f.weights, powers))];
exports.nearest = (f, k) => {
  const values = k[f.kernel].map((v) => Math.max(v, f.far)), last = [...values].sort((a, b) => b - a)[f.neighbours - 1];
  const where = (test) => values.flatMap((v, i) => (test(v) ? [i] : [])), high = last * (1 + f.tie), low = last / (1 + f.tie);
  const chosen = [...where((v) => v > high), ...where((v) => v <= high && v >= low)].slice(0, f.neighbours), share = (i) => 1 / (Math.log(values[i]) ** 2 + f.near ** 2);
  return [dot(chosen.map(share), chosen.map((i) => f.sums[i])) / dot(chosen.map(share), chosen.map((i) => f.weights[i]))];
};
exports.blend = (f, k, value, said = f.experts.map((expert) => clip(value(expert)[0], f.reach))) =>
  [f.shift + f.width * clip(dot(f.weights, said), f.reach)];
exports.stacks = (f, k, value, own = f.experts.map(value), two = own[0].length === 1) => {
  const away = own.map((s, i) => s.map((x, c) => x - f.mean[i][c])).map((s) => (two ? [-s[0], s[0]] : s.map((x) => x - sum(s) / s.length)));
  const scores = away.map((s, i) => s.map((x) => x / f.scale[i]).map((z) => z / Math.sqrt(1 + f.curb[i] * Math.abs(z))));
  const logits = f.pull.map((w, s) => f.bias[s].map((x, c) => x + dot(w, scores.map((own) => own[c]))));
  const shares = logits.map((l) => l.map((x) => 1 / sum(l.map((other) => Math.exp(other - x)))));
  const said = f.bias[0].map((_, c) => Math.log(f.floor[c] + dot(f.trust, shares.map((s) => s[c]))));
  return (two ? [said[1] - said[0]] : said).map((x, o) => x + f.shift[o]);
};
