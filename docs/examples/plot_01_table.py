"""
A table as it comes
===================

Will a bike station be empty within the hour? The table has dates, text, booleans and missing values, as tables do.
:meth:`kernling.StreamPipeline.auto` encodes the columns and chooses the model; nothing is set by hand. Each row is predicted
before it is learned.

The rows are generated, so that the best possible answer is known: homes run out of bikes on weekday mornings, offices in the
evenings, parks on warm weekends, and nobody cycles in snow.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas

import kernling as kl
from kernling.evaluate import test_then_train
from kernling.io import stream
from kernling.report.figures import COLOURS, STYLES

ROWS = 20_000
rng = np.random.default_rng(1)
stations = {f"{kind} {i}": kind for kind in ("homes", "offices", "park") for i in range(1, 5)}
table = pandas.DataFrame({"time": pandas.Timestamp("2026-03-02") + pandas.to_timedelta(9 * np.arange(ROWS), unit="min")})
table["station"] = rng.choice(list(stations), ROWS)
table["weather"] = rng.choice(["sun", "clouds", "rain", "snow"], ROWS, p=[0.4, 0.4, 0.15, 0.05])
table["holiday"] = (table["time"].dt.day_of_year % 23 == 0).astype(bool)
table["temperature"] = 12 + 10 * np.sin(table["time"].dt.day_of_year / 58 - 1.5) + rng.normal(0, 4, ROWS)


def chance(rows):
    """Return the probability that the station is empty within the hour."""
    kind = rows["station"].map(stations)
    hour = rows["time"].dt.hour + rows["time"].dt.minute / 60
    free = (rows["time"].dt.day_of_week >= 5) | rows["holiday"]
    rush = {"homes": (8, 4, ~free), "offices": (17, 4, ~free), "park": (14, 6, free | (rows["temperature"] > 20))}
    demand = sum((kind == name) * days * np.exp(-(((hour - at) / wide) ** 2)) for name, (at, wide, days) in rush.items())
    dry = rows["weather"].map({"sun": 1.0, "clouds": 0.9, "rain": 0.4, "snow": 0.0})
    return 0.03 + 0.94 * (demand * dry > 0.25)


table["empty"] = np.where(rng.random(ROWS) < chance(table), "yes", "no")
best = np.minimum(chance(table), 1 - chance(table)).mean()  # mistakes of someone who knows the rule
table.loc[rng.random(ROWS) < 0.08, "temperature"] = np.nan
table.loc[rng.random(ROWS) < 0.03, "weather"] = None

model = kl.StreamPipeline.auto()
rows = test_then_train(model, stream(table, target="empty", missing="keep"), every=500, window=2000, linear=True)
print(model.steps_[0][1].schema_)

# %%
# The right panels show the predicted chances on sunny days. The effect of the hour depends on the place and on the day, which a
# linear model cannot learn.

figure = plt.figure(figsize=(10, 4.4), layout="constrained")
panels = figure.subplot_mosaic([["wrong", "weekday"], ["wrong", "weekend"]], width_ratios=[3, 2])
names = {"linear": "linear model", "constant": "constant answer"}
events, wrong = [row["events"] for row in rows], panels["wrong"]
wrong.plot(events, [100 * row["mistakes_window"] for row in rows], linewidth=2.2, label=f"Auto: {rows[-1]['mistakes']:.1%}")
for place, (name, words) in enumerate(names.items(), 1):
    label = f"{words}: {rows[-1][f'mistakes_{name}']:.1%}"
    wrong.plot(events, [100 * row[f"mistakes_window_{name}"] for row in rows], STYLES[place], color=COLOURS[place], label=label)
wrong.axhline(100 * best, color="grey", linestyle=":", label=f"best possible: {best:.1%}")
wrong.set(title="mistakes in the last 2,000 rows (%)", xlabel="rows", ylim=(0, 40), xlim=(0, ROWS))
wrong.xaxis.set_major_formatter("{x:,.0f}")
wrong.legend(frameon=False, loc="upper left", ncols=2)
for name, day in {"weekday": "2026-06-30", "weekend": "2026-07-05"}.items():
    hours = pandas.DataFrame({"time": pandas.date_range(day, periods=96, freq="15min"), "weather": "sun", "holiday": False})
    for place, kind in enumerate(("homes", "offices", "park")):
        chances = model.predict_proba(hours.assign(station=f"{kind} 1", temperature=18.0))[:, 1]
        panels[name].plot(np.arange(96) / 4, 100 * chances, STYLES[place], color=COLOURS[place + 2], label=kind)
    panels[name].set(
        title=f"empty on a {name}: chance (%)", xlim=(0, 24), xticks=range(0, 25, 6), ylim=(0, 135), yticks=(0, 50, 100)
    )
panels["weekday"].legend(frameon=False, ncols=3, loc="upper center", fontsize="small")
panels["weekend"].set_xlabel("hour")
for axes in figure.axes:
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
