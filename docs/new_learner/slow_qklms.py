"""QKLMS by its definition, event by event, for the tests."""

import numpy as np

from oracles.common import Case, kernel_values


class QKLMS:
    uniforms = 0

    def __init__(self, params, d, outputs):
        self.params, self.points, self.coef = params, [], []

    def scores(self, x):
        row = kernel_values(self.params, np.reshape(self.points, (-1, len(x))), x)
        return np.array([row @ np.array(self.coef)]) if self.points else np.zeros(1)

    def learn(self, x, y, weight, u):
        change = weight * self.params["eta"] * (y - self.scores(x)[0])
        distances = [np.linalg.norm(x - p) for p in self.points]
        if distances and min(distances) < self.params["delta"] / 2:
            self.coef[int(np.argmin(distances))] += change
        else:
            self.points.append(x.copy())
            self.coef.append(change)


CASES = {
    "QKLMSRegressor": [
        Case(QKLMS, "regression", dict(gamma=1.0, eta=0.5, delta=0.6)),
        Case(QKLMS, "regression", dict(gamma=0.7, eta=0.3, delta=0.0, kernel="matern52"), bounded=False),
    ]
}
