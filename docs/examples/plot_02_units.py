"""
A regression in minutes
=======================

How long will a flight be in the air? The rows are every 25th flight that left New York in 2013
(`nycflights13 <https://github.com/tidyverse/nycflights13>`_, public domain), in the order of departure. The columns are known
before: date, airline, airports, miles, the type of aircraft, and the weather at departure. Many values are missing. Columns and
targets are scaled by running statistics, so units do not matter, and errors are in the unit of the target: minutes.

Each flight is predicted before it is learned.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.dates import DateFormatter, MonthLocator

import kernling as kl
from kernling.evaluate import test_then_train
from kernling.io import stream
from kernling.report.figures import COLOURS, STYLES

here = next(folder for folder in (Path.cwd(), Path("docs/examples")) if (folder / "flights.csv.gz").exists())
flights = stream(here / "flights.csv.gz", target="air_time", missing="keep")
model = kl.StreamPipeline.auto()
rows = test_then_train(model, flights, every=250, linear=True)
print(model.steps_[0][1].schema_)

# %%
# The right panel shows flights to Los Angeles: against the winter's jet stream they take longer, and the model follows the
# seasons.

X, minutes = flights.load()
before = kl.StreamPipeline.auto().predict_then_learn(X, minutes)

figure, (error, route) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
events = [row["events"] for row in rows]
for place, (end, name) in enumerate({"": "Auto", "_linear": "linear model"}.items()):
    label = f"{name}: {rows[-1][f'rmse{end}']:.1f} minutes over all flights"
    recent = [row[f"rmse_window{end}"] for row in rows]
    error.plot(events, recent, STYLES[place], color=COLOURS[place], linewidth=1.8, label=label)
error.plot([], [], " ", label=f"constant answer: {rows[-1]['rmse_constant']:.0f} minutes")
error.set(title="error in the last 1,000 flights (RMSE, minutes)", xlabel="flights", ylim=(0, 35), xlim=(0, events[-1]))
error.xaxis.set_major_formatter("{x:,.0f}")
error.legend(frameon=False)
far = X.columns["dest"] == "LAX"
days = X.columns["departure"][far].astype("datetime64[m]")
route.plot(days, minutes[far], ".", markersize=4, color=COLOURS[4], label="minutes in the air")
route.plot(days, before[far], "-", linewidth=1.2, color=COLOURS[1], label="predicted before")
route.set(title="flights to Los Angeles (minutes)", ylim=(260, 420))
route.xaxis.set_major_locator(MonthLocator(range(1, 13, 2)))
route.xaxis.set_major_formatter(DateFormatter("%b"))
route.legend(frameon=False, ncols=2, loc="upper center")
for axes in (error, route):
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
