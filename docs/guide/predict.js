const fs = require("fs"), mixture = require("./mixture.js");
const [model, rows] = process.argv.slice(2).map((path) => JSON.parse(fs.readFileSync(path, "utf8")));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0), minus = (a, b) => a.map((x, i) => x - b[i]);
const clip = (x, reach) => (reach === null ? x : Math.min(Math.max(x, -reach), reach)), times = (a, b) => (b ? a.map((x, i) => x * b[i]) : a);
const scaled = (s, x, shift = s.shift, factor = s.factor) => clip(s.low + factor * (x - shift), s.reach);
const far = { rbf: (z) => dot(z, z), laplacian: (z) => dot(z, z.map(Math.sign)) };
const kernel = (k, z) => k.points.map((point) => Math.exp(-k.function.gamma * far[k.function.name](minus(z, point))));
const angles = (part, x) => part.frequencies.map((wave, i) => dot(wave, minus(x, part.centre)) + part.phase[i]);
const parts = {
  kernel: (part, row, o) => dot(part.coefficients[o], row.k[part.kernel].map((value) => value ** part.power)),
  fourier: (p, row, o) => dot(p.cosines[o], angles(p, row.x).map(Math.cos)) + dot(p.sines[o], angles(p, row.x).map(Math.sin)),
  step: (part, row, o) => dot(part.coefficients[o], part.edges.map((edge, i) => Number(row.unscaled[part.columns[i]] > edge))),
  linear: (part, row, o) => dot(part.coefficients[o], row.x),
};
const sum = (f, row) => f.offset.map((start, o) => f.parts.reduce((total, part) => total + parts[part.kind](part, row, o), start));
const value = (f, row) => (f.kind === "sum" ? sum(f, row) : mixture[f.kind](f, row.k, (expert) => value(expert, row)));
function encoded(column, value) {
  const missing = [null, ""].includes(value), gap = column.gaps ? [Number(missing)] : [], number = missing ? column.fill : Number(value);
  if (column.treatment !== "category") return [column.scale ? scaled(column.scale, number) : number, ...gap];
  const own = column.categories.map((category) => Number(category === value));
  return [...own, Number(!own.includes(1) && !(missing && column.gaps)), ...gap];
}
for (const row of rows) {
  let unscaled = Object.assign(Array(model.width).fill(0), model.columns?.flatMap((one) => encoded(one, row[one.name])) ?? row);
  for (const s of model.steps) unscaled = unscaled.map((value, i) => scaled(s, value, s.shift[i], s.factor[i]));
  const x = model.scale ? mixture.standardised(model.scale, unscaled) : unscaled;
  const score = value(model.function, { unscaled, x, k: model.kernels.map((k) => kernel(k, times(minus(x, k.centre), k.stretch))) });
  const best = score.length > 1 ? score.indexOf(Math.max(...score)) : Number(score[0] >= 0);
  console.log(JSON.stringify({ score, said: model.output.kind === "labels" ? model.output.classes[best] : score[0] }));
}
