package foreigndrain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Drain is another client who empties a node.
type Drain struct {
	// By names the drainer, such as Karpenter.
	By string
	// Sign names the taint, label or annotation that shows the drain.
	Sign string
	// Since is the time of its start; zero if unknown.
	Since time.Time
	// Removes is true if the node is removed when it is empty.
	Removes bool
	// help suggests what to do if the sign is stale.
	help string
}

const (
	autoscaler = "the cluster-autoscaler"
	karpenter  = "Karpenter"
	// kubectlReasons begins the reasons that kubectl drain reports (KEP-5683).
	kubectlReasons = "KubectlDrain"
	// maxReason and maxWords limit the bytes of foreign text that are shown.
	maxReason, maxWords = 100, 300
	// latest is the last second that a time in an object can have.
	latest = 253402300799
)

// Of returns those who empty a node besides NodeMaintenances, at most one of each kind.
func Of(node *corev1.Node) []Drain {
	var all []Drain
	for _, find := range []func(*corev1.Node) (Drain, bool){ofAutoscaler, ofKarpenter, ofCondition} {
		if drain, found := find(node); found {
			all = append(all, drain)
		}
	}
	return all
}

// Removing reports whether somebody removes the node when it is empty.
func Removing(node *corev1.Node) bool {
	return slices.ContainsFunc(Of(node), func(d Drain) bool { return d.Removes })
}

// Candidate reports whether the cluster-autoscaler considers removing the node.
func Candidate(node *corev1.Node) bool {
	_, tainted := taint(node, v1alpha1.DeletionCandidateTaint)
	return tainted
}

func ofAutoscaler(node *corev1.Node) (Drain, bool) {
	found, tainted := taint(node, v1alpha1.ToBeDeletedTaint)
	if !tainted {
		return Drain{}, false
	}
	d := Drain{By: autoscaler, Sign: "taint " + v1alpha1.ToBeDeletedTaint, Removes: true, help: untaint(autoscaler, node, found)}
	// Its value is the time of the start. Others may have written anything.
	if seconds, err := strconv.ParseInt(found.Value, 10, 64); err == nil && seconds > 0 && seconds <= latest {
		d.Since = time.Unix(seconds, 0)
	}
	return d, true
}

func ofKarpenter(node *corev1.Node) (Drain, bool) {
	d := Drain{By: karpenter, Sign: "taint " + v1alpha1.KarpenterDisruptedTaint, Removes: true}
	if node.DeletionTimestamp != nil {
		d.Since = node.DeletionTimestamp.Time
	}
	if found, tainted := taint(node, v1alpha1.KarpenterDisruptedTaint); tainted {
		d.help = untaint(karpenter, node, found)
		return d, true
	}
	d.Sign, d.help = "finalizer "+v1alpha1.KarpenterTerminationFinalizer, "The node is being deleted and goes when Karpenter is through with it."
	return d, node.DeletionTimestamp != nil && slices.Contains(node.Finalizers, v1alpha1.KarpenterTerminationFinalizer)
}

func ofCondition(node *corev1.Node) (Drain, bool) {
	c := Announced(node)
	if c == nil {
		return Drain{}, false
	}
	d := Drain{By: "another tool", Sign: fmt.Sprintf("condition %s with reason %s", c.Type, excerpt.Line(c.Reason, maxReason)), Since: c.LastTransitionTime.Time}
	if strings.HasPrefix(c.Reason, kubectlReasons) {
		d.By = "kubectl drain"
	}
	if said := excerpt.Line(c.Message, maxWords); said != "" {
		d.Sign += ": " + said
	}
	d.help = command.Of("The budgets apply to both. If that drain has ended: "+
		`kubectl patch node %s --subresource=status -p '{"status":{"conditions":[{"$patch":"delete","type":"%s"}]}}'`, node.Name, c.Type)
	return d, true
}

// Announced returns the condition in which another client announces its drain; nil without one.
func Announced(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == v1alpha1.NodeDrainInProgress && c.Status == corev1.ConditionTrue && c.Reason != v1alpha1.ReasonNodeMaintenance {
			return c
		}
	}
	return nil
}

func taint(node *corev1.Node, key string) (corev1.Taint, bool) {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if at < 0 {
		return corev1.Taint{}, false
	}
	return node.Spec.Taints[at], true
}

func untaint(by string, node *corev1.Node, found corev1.Taint) string {
	return "It takes the taint away if it gives up. If " + by + " does not run any more: " +
		command.Of("kubectl taint node %s %s:%s-", node.Name, found.Key, found.Effect)
}

// Sentence returns who drains the node and since when.
func (d Drain) Sentence(node *corev1.Node) string {
	text := fmt.Sprintf("%s drains node %s", strings.ToUpper(d.By[:1])+d.By[1:], node.Name)
	if d.Removes {
		text += " to remove it"
	}
	if !d.Since.IsZero() {
		text += " since " + d.Since.UTC().Format(time.RFC3339)
	}
	return text + " (" + d.Sign + ")."
}

// Blocker returns a blocker for foreign drains; false without one. Kept adds that the node stays
// cordoned.
func Blocker(node *corev1.Node, kept bool) (v1alpha1.Blocker, bool) {
	drains := Of(node)
	if len(drains) == 0 {
		return v1alpha1.Blocker{}, false
	}
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerForeignDrain, Object: blocker.OfNode(node)}
	var says, helps []string
	for _, d := range drains {
		says, helps = append(says, d.Sentence(node)), append(helps, d.help)
		if since := d.Since; !since.IsZero() && (b.SinceTime == nil || since.Before(b.SinceTime.Time)) {
			b.SinceTime = &metav1.Time{Time: since}
		}
	}
	if kept {
		says = append(says, "It stays cordoned until that is over or the node is gone.")
	}
	b.Message, b.Suggestion = strings.Join(says, " "), strings.Join(helps, " ")
	return b, true
}
