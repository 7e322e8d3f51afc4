package lint

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// APIVersion and Kind are those of a Report that is printed as JSON or YAML.
const (
	APIVersion = "cli.ebbtide.dev/v1alpha1"
	Kind       = "LintReport"
)

// Report is what was found.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	// Time is when it was looked.
	Time metav1.Time `json:"time"`
	// Count counts the findings.
	Count Count `json:"count"`
	// Findings are the worst first, then by check and object.
	Findings []Finding `json:"findings"`
	// Unread is what could not be read, and so was not looked at, a line each.
	Unread []string `json:"unread,omitempty"`
}

// Count counts findings by severity.
type Count struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
}

// Finding is one thing that will trouble a drain.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Object is what is at fault; bare pods are told by their namespace.
	Object v1alpha1.BlockerObject `json:"object"`
	// PodCount is how many pods are concerned.
	PodCount int `json:"podCount"`
	// Message says what will happen, and Suggestion what helps.
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

// Severity is how much a finding will trouble a drain.
type Severity string

const (
	// Error holds a drain up until somebody does something.
	Error Severity = "Error"
	// Warning takes an application down, or leaves something behind.
	Warning Severity = "Warning"
	// Note is worth knowing.
	Note Severity = "Note"
)

// Check is what is looked for.
type Check string

const (
	// BudgetNeverAllows is a PodDisruptionBudget that can never allow a disruption.
	BudgetNeverAllows Check = "BudgetNeverAllows"
	// SeveralBudgets are pods under more than one budget, which nobody can evict.
	SeveralBudgets Check = "SeveralBudgets"
	// SingleReplica is an application with one replica that is not replaced before it goes.
	SingleReplica Check = "SingleReplica"
	// NoBudget is an application of several pods of which a drain may take all at once.
	NoBudget Check = "NoBudget"
	// BarePod are pods that nobody makes again.
	BarePod Check = "BarePod"
	// ToleratesEverything is a DaemonSet whose pods are held back on nodes under
	// maintenance one by one.
	ToleratesEverything Check = "ToleratesEverything"
	// LocalData is an application whose pods lose data when they leave their node.
	LocalData Check = "LocalData"
)

// order is that of severities and of checks.
var order = []Check{BudgetNeverAllows, SeveralBudgets, SingleReplica, NoBudget, BarePod, ToleratesEverything, LocalData}

var severities = map[Check]Severity{
	BudgetNeverAllows: Error, SeveralBudgets: Error, SingleReplica: Warning, NoBudget: Warning, BarePod: Warning, ToleratesEverything: Warning, LocalData: Note,
}

func compare(a, b *Finding) int {
	return cmp.Or(cmp.Compare(slices.Index(order, a.Check), slices.Index(order, b.Check)), blocker.CompareObjects(a.Object, b.Object))
}

func (c *Count) add(s Severity) {
	switch s {
	case Error:
		c.Errors++
	case Warning:
		c.Warnings++
	default:
		c.Notes++
	}
}
