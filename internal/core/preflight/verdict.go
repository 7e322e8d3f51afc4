package preflight

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

func (t *forecaster) verdict(f *Forecast) string {
	switch {
	case t.runs[0].invalid != "":
		return "Nothing would be done, because the spec is not understood: " + t.runs[0].invalid
	case len(f.Nodes) == 0:
		return "Nothing would be done: no node is selected."
	}
	text := subject(f) + " " + fateText(f)
	if parts := besides(&f.Total); len(parts) > 0 {
		text += " " + strings.ToUpper(parts[0][:1]) + parts[0][1:]
		for _, part := range parts[1:] {
			text += ", " + part
		}
		text += "."
	}
	return text
}

func subject(f *Forecast) string {
	if len(f.Nodes) == 1 {
		return f.Nodes[0].Name
	}
	return phrase.Count(len(f.Nodes), "node")
}

func fateText(f *Forecast) string {
	total := &f.Total
	leave := phrase.Count(total.Pods-total.Stay, "pod")
	switch f.Outcome {
	case OutcomeBlocked:
		return fmt.Sprintf("would not be drained: %d of %s would not leave.", total.Held, leave)
	case OutcomeMayBeBlocked:
		return fmt.Sprintf("may not be drained: %d of %s may not leave.", total.MayBeBlocked, leave)
	case OutcomeUnknown:
		if total.Unknown == 0 {
			return "may not be drained: not all pods are known."
		}
		return fmt.Sprintf("may not be drained: it is unknown whether %d of %s would leave.", total.Unknown, leave)
	case OutcomeCompletes:
		return fmt.Sprintf("would be drained when %s completed by %s.", phrase.Count(total.Complete, "pod has", "pods have"), pronoun(total.Complete))
	}
	if total.Pods == total.Stay {
		return "would be drained: no pod has to leave."
	}
	return fmt.Sprintf("would be drained: %s in %s.", phrase.Count(total.Leave, "pod leaves", "pods leave"), phrase.Count(f.WaveCount, "wave"))
}

func pronoun(n int) string {
	if n == 1 {
		return "itself"
	}
	return "themselves"
}

func besides(c *Count) []string {
	var parts []string
	for _, part := range []struct {
		number int
		words  [2]string
	}{
		{c.Stay, [2]string{"pod stays", "pods stay"}},
		{c.Unplaceable, [2]string{"replacement fits nowhere", "replacements fit nowhere"}},
		{c.DataLost, [2]string{"pod loses data", "pods lose data"}},
		{c.Unreplaced, [2]string{"pod has no controller", "pods have no controller"}},
	} {
		if part.number > 0 {
			parts = append(parts, phrase.Count(part.number, part.words[0], part.words[1]))
		}
	}
	return parts
}
