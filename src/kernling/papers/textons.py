"""Texton histograms of textures: pixels are assigned to the nearest of a few typical filter responses, patches to histograms.

After T. Leung, J. Malik, Recognizing surfaces using three-dimensional textons, ICCV 1999.  There are 48 filters: first and
second derivatives of Gaussians (three scales, six directions, three times as long as wide), eight Laplacians, four Gaussians.
"""

from __future__ import annotations

import numpy as np
from scipy import fft
from sklearn.cluster import MiniBatchKMeans

SUPPORT = 49  # pixels, each way


def _filters() -> np.ndarray:
    half = SUPPORT // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float64)
    bank = []
    for scale in np.sqrt(2.0) ** np.arange(1, 4):
        for angle in np.pi * np.arange(6) / 6:
            along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            bump = np.exp(-0.5 * (along / (3.0 * scale)) ** 2 - 0.5 * (across / scale) ** 2)
            bank += [bump * across, bump * ((across / scale) ** 2 - 1.0)]
    square = x**2 + y**2
    scales = np.sqrt(2.0) ** np.arange(1, 5)
    bank += [np.exp(-0.5 * square / s**2) * (square / s**2 - 2.0) for s in (*scales, *(3.0 * scales))]
    centred = [part - part.mean() for part in bank]
    return np.stack([part / np.abs(part).sum() for part in (*centred, *(np.exp(-0.5 * square / s**2) for s in scales))])


def responses(image: np.ndarray) -> np.ndarray:
    """Return the filter responses at each pixel where they fit, (rows, columns, 48)."""
    shape = [fft.next_fast_len(side, real=True) for side in image.shape]
    spectrum = fft.rfft2(image, shape)
    valid = slice(SUPPORT - 1, image.shape[0]), slice(SUPPORT - 1, image.shape[1])
    out = [fft.irfft2(spectrum * fft.rfft2(part, shape), shape)[valid] for part in _filters()]
    return np.stack(out, axis=-1).astype(np.float32)


def histograms(images: list[np.ndarray], textons: int, patch: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return texton histograms of ``count`` random patches, each summing to 1, and the index of the image of each."""
    rng = np.random.default_rng(seed)
    # brightness and contrast differ between scans, and are not texture
    maps = [responses((image - image.mean()) / image.std()) for image in images]
    width = maps[0].shape[-1]
    sample = np.concatenate([part.reshape(-1, width)[rng.choice(part[..., 0].size, 4000, replace=False)] for part in maps])
    clusters = MiniBatchKMeans(textons, random_state=seed, batch_size=4096, n_init=1).fit(sample)
    typed = [clusters.predict(part.reshape(-1, width)).reshape(part.shape[:2]) for part in maps]
    y = rng.integers(len(images), size=count)
    X = np.empty((count, textons))
    for row, image in enumerate(y):
        top, left = (rng.integers(side - patch + 1) for side in typed[image].shape)
        X[row] = np.bincount(typed[image][top : top + patch, left : left + patch].ravel(), minlength=textons)
    return X / patch**2, y
