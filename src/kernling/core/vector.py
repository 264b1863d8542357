"""exp and sincos that a compiler can turn into vector instructions.

``exp(x)`` for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, exp(x) = 2**n exp(r).  Rounding to n is done by adding and
subtracting 1.5 * 2**52 (2**23 in float32), whose low bits then contain n: this is why these functions are compiled
without reordering.  exp(r) and, for sincos, the two series on |r| <= pi / 4 are polynomials interpolated at Chebyshev
nodes in 60-digit arithmetic.

Error bounds, checked by tests/core/test_vector.py against 40-digit values:

==========  ==========================  =============================
function    range                       error
==========  ==========================  =============================
exp         -708 <= x <= 0, float64     relative <= 4e-16
exp         -87 <= x <= 0, float32      relative <= 3e-7
sincos      \\|x\\| <= 1e6, float64       absolute <= 5e-16
sincos      \\|x\\| <= 1e3, float32       absolute <= 3e-7
==========  ==========================  =============================

Below the range exp returns its value at the lower end, less than 1e-37.  Without compilation, NumPy is used.
"""

from __future__ import annotations

import numpy as np

from ..compiler import by_type, inline_exact

LOG2E = np.float64(1.4426950408889634)
LN2_HIGH = np.float64(0.6931471801362932)  # the last 22 bits are zero, so n * LN2_HIGH is exact
LN2_LOW = np.float64(4.236521365809284e-10)
ROUND = np.float64(6755399441055744.0)
LOWEST = np.float64(-708.0)

LOG2E_32 = np.float32(1.4426950408889634)
LN2_HIGH_32 = np.float32(0.693115234375)  # the last 12 bits are zero
LN2_LOW_32 = np.float32(3.1946184945309415e-05)
ROUND_32 = np.float32(12582912.0)
LOWEST_32 = np.float32(-87.0)
E2_32, E3_32, E4_32, E5_32, E6_32 = (
    np.float32(c) for c in (0.5, 0.16666576846, 0.041666554438, 0.0083632029716, 0.0013926213466)
)
ONE_32 = np.float32(1.0)


@inline_exact
def exp64(x):
    x = x if x > LOWEST else LOWEST
    shifted = x * LOG2E + ROUND
    n = shifted - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 2.51004241570050668e-8
    p = p * r + 2.76201387197339956e-7
    p = p * r + 2.75572683786841929e-6
    p = p * r + 0.0000248015211902177277
    p = p * r + 0.000198412698631059687
    p = p * r + 0.00138888889172817933
    p = p * r + 0.00833333333333005135
    p = p * r + 0.0416666666666239915
    p = p * r + 0.166666666666666675
    p = p * r + 0.500000000000000103
    p = p * (r * r) + (r + 1.0)
    return np.int64(np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << np.int64(52))).view(np.float64)


@inline_exact
def exp32(x):
    x = x if x > LOWEST_32 else LOWEST_32
    shifted = x * LOG2E_32 + ROUND_32
    n = shifted - ROUND_32
    r = (x - n * LN2_HIGH_32) - n * LN2_LOW_32
    p = E6_32
    p = p * r + E5_32
    p = p * r + E4_32
    p = p * r + E3_32
    p = p * r + E2_32
    p = p * (r * r) + (r + ONE_32)
    bits = np.float32(shifted).view(np.int32) << np.int32(23)
    return np.int32(np.float32(p).view(np.int32) + np.int32(bits)).view(np.float32)


TWO_OVER_PI = np.float64(0.6366197723675814)
HALF_PI_HIGH = np.float64(1.5707963267341256)  # the last 22 bits are zero, so n * HALF_PI_HIGH is exact for n < 2**22
HALF_PI_LOW = np.float64(6.077100506506192e-11)

TWO_OVER_PI_32 = np.float32(0.6366197723675814)
HALF_PI_HIGH_32 = np.float32(1.5703125)  # few enough bits that n * HALF_PI_HIGH_32 is exact for n < 2**13
HALF_PI_MID_32 = np.float32(0.0004838109016418457)
HALF_PI_LOW_32 = np.float32(1.5893254773528196e-08)
S1_32, S2_32, S3_32, S4_32 = (
    np.float32(c) for c in (-0.166666666638496737, 0.00833333187252686464, -0.00019840085556195348, 2.72497729411518172e-6)
)
C1_32, C2_32, C3_32 = (np.float32(c) for c in (0.0416666646564969954, -0.00138883024518731074, 0.0000245478159284341311))
HALF_32 = np.float32(0.5)


@inline_exact
def _quadrant(s, c, q, one):
    """Return sin and cos of r + q pi / 2 from those of r."""
    swapped = (q & one) != 0
    sine = c if swapped else s
    cosine = s if swapped else c
    return (-sine if (q & (one + one)) != 0 else sine), (-cosine if ((q + one) & (one + one)) != 0 else cosine)


@inline_exact
def sincos64(x):
    shifted = x * TWO_OVER_PI + ROUND
    n = shifted - ROUND
    r = (x - n * HALF_PI_HIGH) - n * HALF_PI_LOW
    z = r * r
    s = 1.59180591369828102e-10
    s = s * z + -2.50511308709682961e-8
    s = s * z + 2.75573160978777502e-6
    s = s * z + -0.0001984126983674956
    s = s * z + 0.00833333333333094253
    s = s * z + -0.166666666666666646
    s = r + r * (z * s)
    c = -1.13825885353525215e-11
    c = c * z + 2.08761456590593425e-9
    c = c * z + -2.75573172688053932e-7
    c = c * z + 0.0000248015872987600488
    c = c * z + -0.00138888888888873935
    c = c * z + 0.0416666666666666654
    c = (1.0 - 0.5 * z) + (z * z) * c
    return _quadrant(s, c, np.float64(shifted).view(np.int64), np.int64(1))


@inline_exact
def sincos32(x):
    shifted = x * TWO_OVER_PI_32 + ROUND_32
    n = shifted - ROUND_32
    r = ((x - n * HALF_PI_HIGH_32) - n * HALF_PI_MID_32) - n * HALF_PI_LOW_32
    z = r * r
    s = ((S4_32 * z + S3_32) * z + S2_32) * z + S1_32
    s = r + r * (z * s)
    c = (C3_32 * z + C2_32) * z + C1_32
    c = (ONE_32 - HALF_32 * z) + (z * z) * c
    return _quadrant(s, c, np.float32(shifted).view(np.int32), np.int32(1))


def exp(x):
    """Return exp of a nonpositive number, in the precision of its type."""
    return np.exp(x)


def sincos(x):
    """Return sin and cos of a number, in the precision of its type."""
    return np.sin(x), np.cos(x)


by_type(exp, float32=exp32, float64=exp64)
by_type(sincos, float32=sincos32, float64=sincos64, numba=True)  # the fast backend would not vectorise its loops
