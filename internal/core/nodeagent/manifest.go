package nodeagent

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Manifest is the part of a static pod manifest that decisions need.
type Manifest struct {
	Namespace, Name string
	Labels          map[string]string
	Priority        *int32
	Grace           time.Duration
	// Component is empty if it is uncertain.
	ControlPlane bool
	Component    string
}

// Priorities of the built-in classes.
var systemPriorities = map[string]int32{"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

// ReadManifest reads one pod of version v1 in YAML or JSON, like the kubelet.
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
	pod.Namespace = cmp.Or(pod.Namespace, corev1.NamespaceDefault)
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

func (m *Manifest) mirror(node string) podKey {
	return podKey{m.Namespace, m.Name + "-" + strings.ToLower(node)}
}

func (m *Manifest) retained() bool {
	return retained(m.Labels)
}

func graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		// A grace period over a day is not enforced.
		seconds = min(max(*pod.Spec.TerminationGracePeriodSeconds, 0), 24*60*60)
	}
	return time.Duration(seconds) * time.Second
}

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
