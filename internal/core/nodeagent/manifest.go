package nodeagent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Manifest is what is asked of a file that makes a static pod.
type Manifest struct {
	// Namespace and Name are those in the file, as the kubelet understands it.
	Namespace, Name string
	// Labels are the pod's.
	Labels map[string]string
	// Priority is nil if the file alone does not tell.
	Priority *int32
	// Grace is how long the pod may take to end.
	Grace time.Duration
	// ControlPlane is true if the pod is part of the control plane, and Component which one;
	// empty if that is not for sure.
	ControlPlane bool
	Component    string
}

// Priorities of the classes that every cluster has.
var systemPriorities = map[string]int32{"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

// ReadManifest reads a file as the kubelet does: one pod of version v1, in YAML or JSON,
// whatever else is in it.
//
// Errors: it is none, in the decoder's words.
func ReadManifest(data []byte) (*Manifest, error) {
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal(data, pod); err != nil {
		return nil, err
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, fmt.Errorf("it has apiVersion %q and kind %q, not v1 and Pod", pod.APIVersion, pod.Kind)
	}
	if pod.Name == "" {
		return nil, errors.New("the pod has no name")
	}
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	m := &Manifest{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Grace: graceOf(pod), ControlPlane: isControlPlane(pod), Component: componentOf(pod),
	}
	if pod.Spec.Priority != nil {
		m.Priority = pod.Spec.Priority
	} else if priority, known := systemPriorities[pod.Spec.PriorityClassName]; known {
		m.Priority = &priority
	}
	return m, nil
}

// mirror is the pod that shows a static pod of a node in the API.
func (m *Manifest) mirror(node string) podKey {
	return podKey{m.Namespace, m.Name + "-" + strings.ToLower(node)}
}

// retained is true if the pod's label asks to leave it alone.
func (m *Manifest) retained() bool {
	return retained(m.Labels)
}

func graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		// Whoever asks for more than a day is waited for as long as it takes.
		seconds = min(max(*pod.Spec.TerminationGracePeriodSeconds, 0), 24*60*60)
	}
	return time.Duration(seconds) * time.Second
}

// asSubject is the pod as a drain sees it.
func asSubject(labels map[string]string, priority int32) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: &priority}}
	pod.Labels = labels
	podclass.MakeMirror(pod, "")
	return pod
}

func retained(labels map[string]string) bool {
	pod := &corev1.Pod{}
	pod.Labels = labels
	behavior, _ := podclass.DrainLabel(pod)
	return behavior != "Drain"
}
