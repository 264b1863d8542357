const fs = require("fs");
const [model, rows] = process.argv.slice(2).map((path) => JSON.parse(fs.readFileSync(path, "utf8")));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const minus = (a, b) => a.map((x, i) => x - b[i]);
const clip = (x, reach) => (reach === null ? x : Math.min(Math.max(x, -reach), reach));
const scaled = (s, x, shift = s.shift, factor = s.factor) => clip(s.low + factor * (x - shift), s.reach);
function rbf(part, x, o) {
  const gaps = part.points.map((point) => minus(minus(x, part.centre), point));
  return dot(part.coefficients[o], gaps.map((z) => Math.exp(-part.kernel.gamma * dot(z, z))));
}
function fourier(part, x, o) {
  const angles = part.frequencies.map((frequency, i) => dot(frequency, minus(x, part.centre)) + part.phase[i]);
  return dot(part.cosines[o], angles.map(Math.cos)) + dot(part.sines[o], angles.map(Math.sin));
}
const parts = { kernel: rbf, fourier: fourier, linear: (part, x, o) => dot(part.coefficients[o], x) };
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
  const score = model.offset.map((offset, o) => model.parts.reduce((sum, part) => sum + parts[part.kind](part, x, o), offset));
  const best = score.length > 1 ? score.indexOf(Math.max(...score)) : Number(score[0] >= 0);
  console.log(JSON.stringify({ score, said: model.output.kind === "labels" ? model.output.classes[best] : score[0] }));
}
