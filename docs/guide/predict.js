const fs = require("fs"), mixture = require("./mixture.js");
const [model, rows] = process.argv.slice(2).map((path) => JSON.parse(fs.readFileSync(path, "utf8")));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0), minus = (a, b) => a.map((x, i) => x - b[i]);
const clip = (x, reach) => (reach === null ? x : Math.min(Math.max(x, -reach), reach));
const scaled = (s, x, shift = s.shift, factor = s.factor) => clip(s.low + factor * (x - shift), s.reach);
const gaps = (kernel, x) => kernel.points.map((point) => minus(minus(x, kernel.centre), point));
const rbf = (kernel, x) => gaps(kernel, x).map((z) => Math.exp(-kernel.function.gamma * dot(z, z)));
const angles = (part, x) => part.frequencies.map((wave, i) => dot(wave, minus(x, part.centre)) + part.phase[i]);
const parts = {
  kernel: (part, x, k, o) => dot(part.coefficients[o], k[part.kernel].map((value) => value ** part.power)),
  fourier: (part, x, k, o) => dot(part.cosines[o], angles(part, x).map(Math.cos)) + dot(part.sines[o], angles(part, x).map(Math.sin)),
  linear: (part, x, k, o) => dot(part.coefficients[o], x),
};
const sum = (f, x, k) => f.offset.map((start, o) => f.parts.reduce((total, part) => total + parts[part.kind](part, x, k, o), start));
const value = (f, x, k) => (f.kind === "sum" ? sum(f, x, k) : mixture[f.kind](f, k, (expert) => value(expert, x, k)));
function encoded(column, value) {
  const missing = value === null || value === "", gap = column.gaps ? [Number(missing)] : [];
  const number = missing ? column.fill : Number(value);
  if (column.treatment !== "category") return [column.scale ? scaled(column.scale, number) : number, ...gap];
  const own = column.categories.map((category) => Number(category === value));
  return [...own, Number(!own.includes(1) && !(missing && column.gaps)), ...gap];
}
for (const row of rows) {
  let x = model.columns ? model.columns.flatMap((column) => encoded(column, row[column.name])) : row;
  for (const step of model.steps) x = x.map((value, i) => scaled(step, value, step.shift[i], step.factor[i]));
  if (model.scale) x = mixture.standardised(model.scale, x);
  const score = value(model.function, x, model.kernels.map((kernel) => rbf(kernel, x)));
  const best = score.length > 1 ? score.indexOf(Math.max(...score)) : Number(score[0] >= 0);
  console.log(JSON.stringify({ score, said: model.output.kind === "labels" ? model.output.classes[best] : score[0] }));
}
