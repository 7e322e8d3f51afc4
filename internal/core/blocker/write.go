package blocker

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

const maxWords = 800

// Refusal is a write of ours that the API server refuses.
type Refusal struct {
	Since, Again time.Time
	// Message holds the API server's answer.
	Message string
}

// EvacuationRefused explains a pod whose Evacuation or EvictionRequest cannot be written.
func EvacuationRefused(kind string, pod *corev1.Pod, r Refusal) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerEvacuationRefused, ofOwner(pod), r.Since)
	b.Message = r.tell(fmt.Sprintf("The %s of pod %s/%s", kind, pod.Namespace, pod.Name))
	b.Suggestion = writers(kind+"s") + command.Of(" Or a quota: kubectl -n %s describe resourcequotas", pod.Namespace)
	return b
}

// DeletionRefused explains a pod that cannot be deleted although its deadline has come.
func DeletionRefused(pod *corev1.Pod, r Refusal) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerDeletionRefused, ofOwner(pod), r.Since)
	b.Message = r.tell("The deletion of pod " + pod.Namespace + "/" + pod.Name)
	b.Suggestion = "Allow the deletion, or postpone spec.deadline.time of the NodeMaintenance."
	return b
}

// WithdrawalRefused explains an Evacuation or EvictionRequest that cannot be withdrawn.
func WithdrawalRefused(kind string, object metav1.Object, r Refusal) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerWithdrawalRefused, v1alpha1.BlockerObject{
		APIVersion: "v1", Kind: "Namespace", Name: object.GetNamespace(),
	}, r.Since)
	b.Message = r.tell(fmt.Sprintf("The withdrawal of %s %s/%s", kind, object.GetNamespace(), object.GetName()))
	b.Suggestion = writers(kind + "s")
	return b
}

// CordonRefused explains a node whose cordon cannot be changed.
func CordonRefused(node *corev1.Node, r Refusal) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerCordonRefused, OfNode(node), r.Since)
	b.PodCount = 0
	b.Message = r.tell("The change of the cordon of node " + node.Name)
	b.Suggestion = writers("Nodes")
	return b
}

// NodeBudget explains a node that a NodeBudget holds.
func NodeBudget(hold *nodebudget.Hold) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerNodeBudget, v1alpha1.BlockerObject{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeBudget", Name: hold.Budget,
	}, time.Time{})
	b.PodCount, b.Message = 0, hold.Message
	b.Suggestion = "See which nodes are unavailable: " + command.Of("kubectl get nodebudget %s", hold.Budget)
	if hold.Budget == "" {
		b.Suggestion = "See the NodeBudgets: kubectl get nodebudgets"
	}
	return b
}

// RecordRefused explains a node whose DrainRecord cannot be written.
func RecordRefused(node *corev1.Node, r Refusal) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerRecordRefused, v1alpha1.BlockerObject{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DrainRecord", Name: node.Name,
	}, r.Since)
	b.PodCount = 0
	b.Message = r.tell("The DrainRecord of node " + node.Name)
	b.Suggestion = writers("DrainRecords")
	return b
}

func writers(kind string) string {
	return fmt.Sprintf("Let Ebbtide write %s. Possible causes: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies", kind)
}

// tell returns what is refused, in the API server's words, and when it is tried again.
func (r Refusal) tell(what string) string {
	return fmt.Sprintf("%s is refused: %s. It is retried at %s.",
		what, strings.TrimRight(excerpt.Of(r.Message, maxWords), ". "), metav1.NewTime(r.Again).UTC().Format("15:04:05 MST"))
}
