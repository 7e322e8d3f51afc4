package lint

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// APIVersion and Kind of a Report that is printed as JSON or YAML.
const (
	APIVersion = "cli.ebbtide.dev/v1alpha1"
	Kind       = "LintReport"
)

// Report holds the findings.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	Time            metav1.Time `json:"time"`
	Count           Count       `json:"count"`
	// Findings are sorted by severity, check and object.
	Findings []Finding `json:"findings"`
	// Unread lists what could not be read and checked.
	Unread []string `json:"unread,omitempty"`
}

// Count counts findings by severity.
type Count struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
}

// Finding is one problem for a drain.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Object is at fault. Bare pods are combined by namespace.
	Object     v1alpha1.BlockerObject `json:"object"`
	PodCount   int                    `json:"podCount"`
	Message    string                 `json:"message"`
	Suggestion string                 `json:"suggestion"`
}

// Severity ranks findings.
type Severity string

const (
	// Error blocks a drain until someone acts.
	Error Severity = "Error"
	// Warning takes an application down or loses something.
	Warning Severity = "Warning"
	// Note is worth knowing.
	Note Severity = "Note"
)

// Check is the type of a finding.
type Check string

const (
	// BudgetNeverAllows is a PodDisruptionBudget that can never allow a disruption.
	BudgetNeverAllows Check = "BudgetNeverAllows"
	// SeveralBudgets are pods under more than one budget, which cannot be evicted.
	SeveralBudgets Check = "SeveralBudgets"
	// SingleReplica is an application with one replica that goes down before it is replaced.
	SingleReplica Check = "SingleReplica"
	// NoBudget is an application whose pods may all be evicted at once.
	NoBudget Check = "NoBudget"
	// BarePod are pods without a controller.
	BarePod Check = "BarePod"
	// ToleratesEverything is a DaemonSet whose pods are held back one by one on nodes under
	// maintenance.
	ToleratesEverything Check = "ToleratesEverything"
	// LocalData is an application whose pods lose data when they leave their node.
	LocalData Check = "LocalData"
)

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
