"""
Decision surfaces and stored points
===================================

POLK learns five classes of three Gaussians each, the stream of its paper. After every mini-batch it removes as many points as
its error bound allows, so that points remain only where they are needed.
"""

import kernling as kl
from kernling.io import synthetic
from kernling.report import surface

rows = synthetic("multidist", 5000, seed=6)
X, y = rows.load()
some = slice(0, 1200)

# %%
# With the hinge loss:

model = kl.POLKClassifier(loss="hinge", gamma=1.389, eta=6.0, parsimony=0.04).fit(X, y)
hinge = surface(model, X[some], y[some])
print(f"{1 - model.score(X, y):.1%} wrong, {model.n_stored_} points")

# %%
# With the cross-entropy of a softmax:

model = kl.POLKClassifier(loss="softmax", gamma=1.389, eta=6.0, parsimony=0.03).fit(X, y)
softmax = surface(model, X[some], y[some])
print(f"{1 - model.score(X, y):.1%} wrong, {model.n_stored_} points")
