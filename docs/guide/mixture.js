const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0), sum = (a) => a.reduce((x, y) => x + y, 0);
const between = (x, low, high) => Math.min(Math.max(x, low), high), clip = (x, reach) => between(x, -reach, reach);
exports.standardised = ({ share, mean, variance, level }, x) => {
  const levels = x.map((v, i) => Math.max(level[i], v === 0 || v === 1 ? 0 : v > 0 && v < 1 ? 1 : 2));
  const scaled = (z, i) => (z && (z * Math.sqrt(share)) / Math.sqrt(variance[i] + (1 - share) * z * z));
  return x.map((v, i) => (levels[i] > 0 && levels.includes(2) ? scaled(v - mean[i], i) : v));
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
exports.vote = (f, k, value, own = f.experts.map(value), two = own[0].length === 1) => {
  const best = (a) => a.findIndex((x) => x >= Math.max(...a) - f.tie), scaled = (x, i) => clip(x / f.scale[i], f.reach);
  const scores = own.map((s, i) => (two ? [s[0], -s[0]] : s.map((x) => x - sum(s) / s.length)).map((x) => scaled(x, i)));
  const mixed = (weights) => f.bias.map((_, c) => dot(weights, scores.map((s) => s[c]))), logits = mixed(f.pull).map((x, c) => x + f.bias[c]);
  const chosen = [...scores, mixed(f.blend), logits].map(best), stacked = best(logits), bins = f.right.length;
  const winner = best(logits.map((_, c) => dot(f.votes, chosen.map((b) => Number(b === c))) + (c === stacked ? f.ahead : 0)));
  [logits[winner], logits[stacked]] = [logits[stacked], logits[winner]];
  const ratios = logits.filter((_, c) => c !== winner).map((x) => Math.exp(x - logits[winner])), r = sum(ratios), s = Math.max(...ratios);
  const place = between(bins / (1 + r) - 0.5, 0, bins - 1), low = Math.min(Math.floor(place), bins - 2);
  const right = between(f.right[low] + (place - low) * (f.right[low + 1] - f.right[low]), s / (r + s) + f.barely, 1 - f.barely);
  logits[winner] += Math.log(right / (1 - right)) + Math.log(r);
  return two ? [logits[0] - logits[1]] : logits;
};
