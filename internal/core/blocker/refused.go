package blocker

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// refused explains an eviction that the API server refused, from the condition in the Evacuation.
func refused(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Evacuation == nil {
		return v1alpha1.Blocker{}, false
	}
	answer := meta.FindStatusCondition(f.Evacuation.Status.Conditions, v1alpha1.ConditionEvictionRefused)
	if answer == nil || answer.Status != metav1.ConditionTrue {
		return v1alpha1.Blocker{}, false
	}
	b := explain(f, answer.Message, v1alpha1.BlockerType(answer.Reason))
	b.PodCount = 1
	if b.SinceTime == nil {
		b.SinceTime = answer.LastTransitionTime.DeepCopy()
	}
	return b, true
}

func explain(f *Facts, answer string, kind v1alpha1.BlockerType) v1alpha1.Blocker {
	switch kind {
	case v1alpha1.BlockerPDBExhausted:
		return refusedByBudget(f, answer)
	case v1alpha1.BlockerMultiplePDBs:
		return refusedForBudgets(f, answer)
	case v1alpha1.BlockerPDBLocked:
		return refusedByLock(f, answer)
	case v1alpha1.BlockerWebhookDenied:
		return refusedByWebhook(f, answer)
	case v1alpha1.BlockerNamespaceTerminating:
		return v1alpha1.Blocker{
			Type: kind, Object: v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Namespace", Name: f.Pod.Namespace}, Message: answer,
			Suggestion: command.Of("The conditions of the namespace name what its deletion waits for: kubectl get namespace %s -o yaml", f.Pod.Namespace),
		}
	default:
		return v1alpha1.Blocker{
			Type: v1alpha1.BlockerEvictionError, Object: ofPod(f.Pod), Message: answer,
			Suggestion: command.Of("See the whole story: kubectl -n %s describe evacuation %s", f.Pod.Namespace, f.Evacuation.Name),
		}
	}
}

func refusedByBudget(f *Facts, answer string) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerPDBExhausted, Message: answer}
	name, guilty := guiltyBudget(f)
	if name == "" {
		b.Suggestion = command.Of("See the budgets of the namespace: kubectl -n %s get poddisruptionbudgets", f.Pod.Namespace)
		return b
	}
	b.Object = budgetNamed(f.Pod.Namespace, name)
	if guilty == nil {
		b.Suggestion = command.Of("See what the budget counts: kubectl -n %s describe poddisruptionbudget %s", f.Pod.Namespace, name)
		return b
	}
	b.Object = OfBudget(guilty)
	if why, never := budget.Never(guilty); never {
		b.Type = v1alpha1.BlockerPDBUnsatisfiable
		b.Message = fmt.Sprintf("PodDisruptionBudget %s can never allow a disruption: %s.", name, why)
	}
	b.Suggestion = advise(f.Pod, guilty, b.Type == v1alpha1.BlockerPDBUnsatisfiable)
	return b
}

// guiltyBudget returns the budget that refused, or else the only one that applies.
func guiltyBudget(f *Facts) (name string, guilty *policyv1.PodDisruptionBudget) {
	applying := f.Budgets.Applying(f.Pod)
	if f.Evacuation != nil {
		name = f.Evacuation.Status.RefusingBudgetName
	}
	if name == "" && len(applying) == 1 {
		name = applying[0].Name
	}
	for _, b := range applying {
		if b.Name == name {
			return name, b
		}
	}
	return name, nil
}

const maxNames = 10

func refusedForBudgets(f *Facts, answer string) v1alpha1.Blocker {
	applying := f.Budgets.Applying(f.Pod)
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerMultiplePDBs, Object: ofOwner(f.Pod), Message: answer}
	if len(applying) < 2 {
		b.Suggestion = command.Of("Let only one budget select the pod: kubectl -n %s get poddisruptionbudgets", f.Pod.Namespace)
		return b
	}
	names := make([]string, len(applying))
	for i := range names {
		names[i] = applying[i].Name
	}
	b.Message += " They are " + phrase.Some(names, maxNames) + "."
	if len(names) > maxNames {
		b.Suggestion = command.Of("Keep one and narrow or delete the rest. See what they select: kubectl -n %s get poddisruptionbudgets -o custom-columns=NAME:.metadata.name,SELECTS:.spec.selector", f.Pod.Namespace)
		return b
	}
	b.Suggestion = command.Of("Keep one and narrow or delete the rest, such as: kubectl -n %s delete poddisruptionbudget %s",
		f.Pod.Namespace, command.Names(names[1:]...))
	return b
}

func refusedByWebhook(f *Facts, answer string) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerWebhookDenied, Message: answer}
	named := apierror.Webhook(answer)
	if named == "" {
		b.Object = ofPod(f.Pod)
		b.Suggestion = "Ask the owner of the policy, or find it: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies"
		return b
	}
	b.Object = v1alpha1.BlockerObject{Kind: "Webhook", Name: named}
	b.Suggestion = command.Of("Do what its message asks for. Its configuration: "+
		"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B 40 'name: %s'", named)
	return b
}
