// Package nodebudget determines which NodeBudgets keep the NodeMaintenances of users from a node.
// The decision of rollouts admits nodes in the status of each budget; see core/rollout.
package nodebudget

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Max bounds the NodeBudgets of a cluster. With more, no node starts, and none is looked at.
const Max = 64

// maxWhy bounds the error of a read in a message, in bytes.
const maxWhy = 200

// TooMany returns why no node starts; empty with at most Max budgets.
func TooMany(count int) string {
	if count <= Max {
		return ""
	}
	return fmt.Sprintf("There are %d NodeBudgets. At most %d may exist.", count, Max)
}

// Set holds the NodeBudgets that apply to NodeMaintenances of users. The zero value holds none.
type Set struct {
	// every holds all nodes; nil if none does.
	every   *Hold
	unread  bool
	budgets []budget
}

// Empty returns true if no node is held.
func (s Set) Empty() bool { return s.every == nil && len(s.budgets) == 0 }

// Unread reports whether the budgets could not be read.
func (s Set) Unread() bool { return s.unread }

// Hold says which NodeBudget holds a node, and why.
type Hold struct {
	// Budget is its name; empty if nobody knows which.
	Budget  string
	Message string
}

type budget struct {
	name string
	// selector is nil if it is invalid, so that the budget selects all nodes.
	selector *nodeaffinity.NodeSelector
	admitted map[string]types.UID
}

// Compile reads the budgets that apply to all.
func Compile(all []*v1alpha1.NodeBudget) (s Set) {
	for _, object := range all {
		if object.Spec.AppliesTo != v1alpha1.NodeBudgetOfAll || object.DeletionTimestamp != nil {
			continue
		}
		if text := TooMany(len(all)); text != "" {
			return Set{every: &Hold{Message: text}}
		}
		b := budget{name: object.Name, admitted: Admitted(object)}
		if object.Spec.NodeSelector != nil {
			b.selector, _ = nodeaffinity.NewNodeSelector(object.Spec.NodeSelector)
		}
		s.budgets = append(s.budgets, b)
	}
	slices.SortFunc(s.budgets, func(a, b budget) int { return cmp.Compare(a.name, b.name) })
	return s
}

// Admitted returns the nodes that a budget lists, with the UIDs of NodeMaintenances of users.
func Admitted(b *v1alpha1.NodeBudget) map[string]types.UID {
	all := make(map[string]types.UID, len(b.Status.Working))
	for _, entry := range b.Status.Working {
		all[entry.Name] = entry.NodeMaintenanceUID
	}
	return all
}

// Unread returns a Set that holds every node, because the budgets could not be read.
func Unread(why string) Set {
	return Set{unread: true, every: &Hold{Message: "The NodeBudgets could not be read: " + excerpt.Line(why, maxWhy)}}
}

// Holding returns what holds a node that is not cordoned by a NodeMaintenance; nil if each budget that
// selects it has admitted it for one of these NodeMaintenances.
func (s Set) Holding(node *corev1.Node, maintenances []types.UID) *Hold {
	if s.every != nil {
		return s.every
	}
	for i := range s.budgets {
		b := &s.budgets[i]
		uid := b.admitted[node.Name]
		if (b.selector == nil || b.selector.Match(node)) && (uid == "" || !slices.Contains(maintenances, uid)) {
			return &Hold{Budget: b.name, Message: fmt.Sprintf("Node %s waits until NodeBudget %s allows it to be unavailable.", node.Name, b.name)}
		}
	}
	return nil
}
