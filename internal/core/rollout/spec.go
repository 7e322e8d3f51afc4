package rollout

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// maxStarted bounds the nodes under maintenance at the same time, as status.working does.
	maxStarted = 256
	// Defaults of the API.
	usualDrainTimeout, usualWorkTimeout, usualRetryCount = 1800, 3600, 1
)

// Spec is the compiled spec of a NodeRollout.
type Spec struct {
	selector *selector
	// target is nil if the spec has none.
	target   *handover.Target
	calendar *calendar.Calendar

	drainTimeout, workTimeout time.Duration
	retryCount                int32
	byName                    map[string]v1alpha1.RolloutNodeSpec

	// conditions are those of nodes that ask for maintenance; nil if none does.
	conditions []string
	continuous bool
}

// Read compiles the spec of a NodeRollout. The error names the field at fault.
func Read(spec *v1alpha1.NodeRolloutSpec) (*Spec, error) {
	compiled := &Spec{
		drainTimeout: seconds(spec.Failure.DrainTimeoutSeconds, usualDrainTimeout), workTimeout: seconds(spec.Failure.WorkTimeoutSeconds, usualWorkTimeout),
		retryCount: usualRetryCount, byName: make(map[string]v1alpha1.RolloutNodeSpec, len(spec.Nodes)),
		conditions: conditionsOf(spec.When), continuous: spec.Mode == v1alpha1.RolloutContinuous,
	}
	if spec.Failure.RetryCount != nil {
		compiled.retryCount = *spec.Failure.RetryCount
	}
	for _, node := range spec.Nodes {
		compiled.byName[node.Name] = node
	}
	var err error
	if compiled.selector, err = readSelector(spec.NodeSelector); err != nil {
		return nil, err
	}
	if compiled.target, err = handover.ReadTarget("spec.target", spec.Target); err != nil {
		return nil, err
	}
	if compiled.calendar, err = calendar.Read(spec.Windows, spec.Blackouts); err != nil {
		return nil, err
	}
	if err := checkGates(spec.Gates); err != nil {
		return nil, err
	}
	for name, amount := range map[string]*intstr.IntOrString{"maxUnavailable": spec.MaxUnavailable, "failure.maxFailures": spec.Failure.MaxFailures} {
		if _, err := share(amount, 1); err != nil {
			return nil, fmt.Errorf("spec.%s: %w", name, err)
		}
	}
	return compiled, nil
}

func seconds(value *int32, usual int32) time.Duration {
	if value != nil {
		usual = *value
	}
	return time.Duration(usual) * time.Second
}

// share returns a number of nodes, at least 1: a percentage is rounded down. Unset is 1.
func share(amount *intstr.IntOrString, nodes int) (int, error) {
	if amount == nil {
		return 1, nil
	}
	if amount.Type == intstr.Int {
		if amount.IntVal < 1 {
			return 0, fmt.Errorf("must be at least 1, is %d", amount.IntVal)
		}
		return int(amount.IntVal), nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(amount.StrVal, "%"))
	if err != nil || percent < 1 || percent > 100 || !strings.HasSuffix(amount.StrVal, "%") {
		return 0, fmt.Errorf("must be a number, or a percentage from 1%% to 100%%, is %q", amount.StrVal)
	}
	return max(1, nodes*percent/100), nil
}

// Selects returns true if the rollout maintains the node.
func (s *Spec) Selects(node *corev1.Node, policy v1alpha1.ControlPlanePolicy) bool {
	if podclass.IsControlPlane(node.Labels) && policy != v1alpha1.ControlPlaneFirst && policy != v1alpha1.ControlPlaneLast {
		return false
	}
	return s.selector.Match(node)
}

// needs returns true if the node has not got what the rollout is for, as far as the node shows it.
func (s *Spec) needs(node *corev1.Node) bool {
	if s.target == nil && s.conditions == nil {
		return true
	}
	return s.target != nil && (s.target.NewBoot() || !s.target.Met(node)) || s.asks(node) != nil
}

// asks returns the condition by which a node asks for maintenance; nil if none.
func (s *Spec) asks(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Status == corev1.ConditionTrue && slices.Contains(s.conditions, string(c.Type)) {
			return c
		}
	}
	return nil
}

// conditionsOf returns the types of node conditions that ask for maintenance; nil if when is unset.
func conditionsOf(when *v1alpha1.RolloutWhen) []string {
	if when == nil {
		return nil
	}
	conditions := append([]string{}, when.Conditions...)
	if when.RebootRequired {
		conditions = append(conditions, v1alpha1.NodeRebootRequired)
	}
	return conditions
}

// completesItself returns true if the maintenance of a node ends without a user.
func completesItself(spec *v1alpha1.NodeRolloutSpec) bool {
	return spec.After != v1alpha1.AfterStayDrained && spec.After != v1alpha1.AfterReplace && (spec.Target != nil || spec.Reboot || spec.Job != nil)
}

// completeWhen returns what a node must report before its maintenance ends; nil if nothing.
func completeWhen(spec *v1alpha1.NodeRolloutSpec) *v1alpha1.CompleteWhen {
	if !completesItself(spec) {
		return nil
	}
	when := spec.Target.DeepCopy()
	if spec.Reboot {
		if when == nil {
			when = &v1alpha1.CompleteWhen{}
		}
		when.NewBoot = true
	}
	return when
}

// targetOf returns a text that changes when nodes have to be maintained again.
func targetOf(spec *v1alpha1.NodeRolloutSpec) string {
	work := []any{spec.Target, spec.When, spec.Reboot}
	if spec.Job != nil { // Otherwise an upgrade would change it.
		work = append(work, spec.Job)
	}
	return hashOf(work...)
}

// hashOf returns a short text that differs if any of the values does.
func hashOf(values ...any) string {
	hash := fnv.New64a()
	for _, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // Only values of the API.
		}
		_, _ = hash.Write(text)
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}

func sorted[T any](values []T, name func(T) string) []T {
	return slices.SortedFunc(slices.Values(values), func(a, b T) int { return strings.Compare(name(a), name(b)) })
}
