package nodeagent

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	maxPods    = 256
	maxMessage = 1024
)

func (d *decider) terminating(key podKey, e *Entry) (reason, message string) {
	due := e.At.Add(e.grace() + stuckAfter)
	switch {
	case d.KubeletSeen.IsZero():
		return v1alpha1.StaticPodKubeletDown, fmt.Sprintf("cannot determine whether the kubelet of %s runs because its Lease in %s is missing or unreadable; "+
			"waiting for it before %s counts as gone.", d.Self.Node, corev1.NamespaceNodeLease, key.name)
	case d.silent():
		return v1alpha1.StaticPodKubeletDown, fmt.Sprintf("the kubelet of %s has not responded since %s; %s will stop when it recovers.",
			d.Self.Node, clock(d.KubeletSeen), key.name)
	case due.After(d.Now):
		d.until(due)
		return "", fmt.Sprintf("%s is terminating the pod due to node maintenance%s.", key.name, because(e.Reason))
	}
	return v1alpha1.StaticPodStuck, fmt.Sprintf("%s still runs although its manifest was put aside at %s and its grace period is %ds. It is stuck (%s), "+
		"or the staticPodPath of the kubelet is not %s.",
		key.name, clock(e.At), e.GraceSeconds, command.Of("crictl pods --name %s", key.name), d.Self.Dir)
}

// reportProgress reports the progress of a terminating pod on changes and regularly.
func (d *decider) reportProgress(mirror *corev1.Pod, e *Entry, message string) {
	if mirror == nil || d.evacuation[mirror.UID] == nil || !Active(d.evacuation[mirror.UID]) {
		return
	}
	evacuation := d.evacuation[mirror.UID]
	status := evacuation.Status
	renewed := time.Time{}
	if status.EvacuationProgressTimestamp != nil {
		renewed = status.EvacuationProgressTimestamp.Time
	}
	told := status.ExpectedEvacuationFinishTime != nil && status.Message == message
	if told && d.Now.Before(renewed.Add(renewAfter)) {
		d.until(renewed.Add(renewAfter))
		return
	}
	next := *status.DeepCopy()
	next.EvacuationProgressTimestamp = &metav1.Time{Time: d.Now}
	next.ExpectedEvacuationFinishTime = &metav1.Time{Time: e.At.Add(e.grace())}
	next.Message = message
	d.d.Evacuations = append(d.d.Evacuations, Progress{Evacuation: evacuation, Status: next})
	d.until(d.Now.Add(renewAfter))
}

func (d *decider) report() {
	status := v1alpha1.NodeAgentStatus{}
	if d.Agent != nil {
		status = *d.Agent.Status.DeepCopy()
	}
	status.AgentVersion, status.PodName, status.PodNamespace = d.Self.Version, d.Self.PodName, d.Self.PodNamespace
	status.BootID, status.ManifestDir = d.Self.BootID, d.Self.Dir
	status.HeldCount = 0
	status.StaticPods = nil
	for key, pod := range d.pods {
		pod.Message = excerpt.Line(pod.Message, maxMessage)
		pod.SinceTime = &metav1.Time{Time: d.Now.Truncate(time.Second)}
		if before, known := d.known[key]; known && before.State == pod.State && before.SinceTime != nil {
			pod.SinceTime = before.SinceTime
		}
		if pod.State == v1alpha1.StaticPodHolding || pod.State == v1alpha1.StaticPodHeld {
			status.HeldCount++
		}
		status.StaticPods = append(status.StaticPods, pod)
	}
	slices.SortFunc(status.StaticPods, func(a, b v1alpha1.StaticPod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), comparePods(podKey{a.Namespace, a.Name}, podKey{b.Namespace, b.Name}))
	})
	status.StaticPods = status.StaticPods[:min(len(status.StaticPods), maxPods)]
	condition := d.condition()
	condition.Message = excerpt.Line(condition.Message, maxMessage)
	condition.LastTransitionTime = metav1.Time{Time: d.Now.Truncate(time.Second)}
	meta.SetStatusCondition(&status.Conditions, condition)
	d.d.Status = status
}

func rank(pod v1alpha1.StaticPod) int {
	return slices.Index([]v1alpha1.StaticPodState{
		v1alpha1.StaticPodHolding, v1alpha1.StaticPodHeld, v1alpha1.StaticPodRestoring, v1alpha1.StaticPodUnmanageable, v1alpha1.StaticPodRunning,
	}, pod.State)
}

// complaints are reasons for which the condition is not True, the worst first.
var complaints = []string{
	v1alpha1.StaticPodNotStarted, v1alpha1.StaticPodRefused, v1alpha1.StaticPodUnparsable, v1alpha1.StaticPodNoManifest,
	v1alpha1.StaticPodSeveralManifests, v1alpha1.StaticPodNoMirror,
}

func (d *decider) condition() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionStaticPodsManageable, Status: metav1.ConditionFalse}
	if d.Folder.Fault != "" {
		c.Reason, c.Message = d.Folder.Fault, d.Folder.Message
		return c
	}
	worst, first, count := math.MaxInt, podKey{}, 0
	for key, pod := range d.pods {
		at := slices.Index(complaints, pod.Reason)
		switch {
		case at < 0 || at > worst:
		case at < worst:
			worst, first, count = at, key, 1
		default:
			count++
			if comparePods(key, first) < 0 {
				first = key
			}
		}
	}
	if count > 0 {
		c.Reason, c.Message = complaints[worst], d.pods[first].Message
		if count > 1 {
			c.Message = fmt.Sprintf("%s The same applies to %d more.", strings.TrimSpace(c.Message), count-1)
		}
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.StaticPodsFound
	c.Message = fmt.Sprintf("The static pods of %s can be stopped, except those with a reason.", d.Self.Dir)
	if d.Folder.Absent {
		c.Reason, c.Message = v1alpha1.StaticPodsNone, fmt.Sprintf("There are no static pods because folder %s does not exist.", d.Self.Dir)
	}
	return c
}
