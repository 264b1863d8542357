"""A compiler of a small part of Python, which takes a tenth of the time that Numba takes."""
