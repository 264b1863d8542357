"""The papers' theorems, evaluated for a run: functions of plain numbers, which methods call for their certificates.

``MEANINGS`` says for each number what it bounds, under which conditions, and which theorem of the paper it is.
"""
