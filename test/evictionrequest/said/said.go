// Package said puts what Evictions and EvictionRequests say into lines that tests compare.
package said

import (
	"fmt"
	"slices"
	"strings"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Awaiting is what Conditions are of one whose pod is there.
const Awaiting = "Failed=False/AwaitingEviction, TargetEvicted=False/AwaitingEviction"

// Conditions are those of an Eviction or a request: "Failed=False/Succeeded,
// TargetEvicted=True/PodDeleted: Pod web-0 is gone.". Those of other types are left out.
func Conditions(all []metav1.Condition) string {
	var words []string
	for _, kind := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionFailed, lifecyclev1alpha1.EvictionConditionTargetEvicted} {
		for _, c := range all {
			if c.Type == string(kind) {
				words = append(words, strings.TrimSuffix(fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message), ": "))
			}
		}
	}
	return strings.Join(words, ", ")
}

// Turns are the responders of an Eviction and their states, in the order of their turns.
func Turns(e *lifecyclev1alpha1.Eviction) string {
	ordered := slices.Clone(e.Status.TargetResponders)
	evictionrequest.Sort(ordered)
	words := make([]string, len(ordered))
	for n, one := range ordered {
		words[n] = one.Name + " " + string(one.State)
	}
	return strings.Join(words, ", ")
}
