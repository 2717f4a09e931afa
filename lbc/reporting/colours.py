"""The colours of every figure and page: Okabe and Ito's, which colour-blind readers tell apart."""

from __future__ import annotations

# For lines on white; Okabe and Ito's yellow is too pale for one.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333")
# The same hues for lines on a dark page, at least 4.5 to 1 against it.
DARK_PALETTE = ("#4DA8DD", "#F2884A", "#2DC49A", "#E09CC2", "#8CCDF2", "#F0B93A", "#C9CED4")
# For areas, where yellow and grey can be told, too.
FILLS = (*PALETTE[:6], "#F0E442", "#999999")
GRID, TEXT, QUIET, BAR = "#e3e6ea", "#333a42", "#6b7480", "#a9b4c0"
