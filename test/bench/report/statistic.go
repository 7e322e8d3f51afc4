package report

import (
	"math"
	"slices"
)

// Quantile is the smallest of values that at least the share q of them does not
// exceed; NaN for no values. The median of an even number of values is thus the
// lower of the middle two: a value that was measured and not one in between.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
