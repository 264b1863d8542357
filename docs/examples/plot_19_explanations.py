"""
Why this prediction?
====================

Explanations say how much each column contributes to a prediction, and which columns matter now. Trips are late because of the
city, the distance, and rain in the evening; after two thirds of the stream the rule changes, and only the weekday counts. The
encoded columns of a category have one contribution together.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas

import kernling as kl

ROWS, CHANGE = 12_000, 8_000
rng = np.random.default_rng(0)
trips = pandas.DataFrame({"city": rng.choice(["Bern", "Oslo", "Rome"], ROWS), "km": rng.gamma(4.0, 10.0, ROWS)})
trips["hour"], trips["rain"] = rng.integers(6, 23, ROWS), rng.random(ROWS) < 0.3
trips["weekday"] = rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri"], ROWS)
minutes = 5.0 + 10.0 * (trips["city"] == "Rome") + 0.1 * trips["km"] + 15.0 * (trips["rain"] & (trips["hour"] > 17))
minutes[CHANGE:] = 10.0 + 20.0 * (trips["weekday"][CHANGE:] == "Fri")
minutes += rng.normal(0.0, 2.0, ROWS)

# %%
# A row
# -----
# Contributions sum to the prediction minus the base, which is the mean prediction for rows whose columns are drawn at random
# from recent ones. In this row it rains in the evening, and the two columns share their joint effect.

model = kl.StreamPipeline.auto(task="regression")
events, importances = [], []
for part in np.split(np.arange(CHANGE), 8):
    model.partial_fit(trips.iloc[part], minutes.iloc[part])
    events.append(model.t_)
    importances.append(model.importances_)
row = pandas.DataFrame({"city": ["Rome"], "km": [20.0], "hour": [19], "rain": [True], "weekday": ["Tue"]})
found = model.explain(row)
print({name: round(value, 1) for name, value in model.explain_one(row.iloc[0].to_dict()).items()})
print(f"{found.base:.1f} + {found.values.sum():.1f} = {found.score[0]:.1f} minutes")

figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
order = np.argsort(np.abs(found.values[0]))
values, names = found.values[0][order], [f"{found.columns[place]} = {row.iloc[0][found.columns[place]]}" for place in order]
panel.barh(names, values, xerr=found.error[0][order], color=np.where(values < 0.0, "#c2410c", "#2563eb"))
panel.axvline(0.0, color="grey", linewidth=0.8)
panel.set(xlabel=f"minutes more than {found.base:.0f}, the mean", title=f"Why {found.score[0]:.0f} minutes late?")

# %%
# A stream
# --------
# The mean size of contributions to the predictions of recent rows says what matters now.

for part in np.split(np.arange(CHANGE, ROWS), 8):
    model.partial_fit(trips.iloc[part], minutes.iloc[part])
    events.append(model.t_)
    importances.append(model.importances_)
figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name in trips.columns:
    panel.plot(events, [moment[name] for moment in importances], label=name)
panel.axvline(CHANGE, color="grey", linewidth=0.8, linestyle=":")
panel.set(
    xlabel="events; the rule changes at the dotted line", ylabel="mean size in minutes", title="Which columns matter now?"
)
panel.set_ylim(bottom=0.0)
panel.legend(ncols=2, fontsize="small")
plt.show()
