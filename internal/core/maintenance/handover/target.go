package handover

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Target holds what a node has to report.
type Target struct {
	spec *v1alpha1.CompleteWhen
	// kubelet is nil if the version of the kubelet is no range.
	kubelet versionRange
}

// ReadTarget reads what nodes have to report; nil if there is nothing. The error names the field at
// fault, below path.
func ReadTarget(path string, spec *v1alpha1.CompleteWhen) (*Target, error) {
	if spec == nil {
		return nil, nil
	}
	if !spec.NewBoot && cmp.Or(spec.KubeletVersion, spec.KernelVersion, spec.OSImage, spec.ContainerRuntimeVersion) == "" {
		return nil, errors.New(path + ": says nothing about the node: give newBoot: true or a version")
	}
	t := &Target{spec: spec}
	if isRange(spec.KubeletVersion) {
		var err error
		if t.kubelet, err = parseRange(spec.KubeletVersion); err != nil {
			return nil, fmt.Errorf("%s.kubeletVersion: %w", path, err)
		}
	}
	return t, nil
}

// NewBoot returns true if the node has to boot, whatever it reports.
func (t *Target) NewBoot() bool { return t.spec.NewBoot }

// Met returns true if the node reports every version.
func (t *Target) Met(node *corev1.Node) bool {
	_, found := t.differing(node)
	return !found
}

// mismatch returns the first version that the node does not report; reason is empty if none.
func (t *Target) mismatch(node *corev1.Node) (reason, message string) {
	v, found := t.differing(node)
	if !found {
		return "", ""
	}
	reported := cmp.Or(excerpt.Line(v.reported, maxReported), "of an unknown version")
	return v1alpha1.ReasonWaitingForVersion, fmt.Sprintf("%s runs %s %s, %s is wanted", node.Name, v.what, reported, v.wanted)
}

// version is one that a node has to report.
type version struct {
	met                    bool
	what, reported, wanted string
}

// differing returns the first version that the node does not report.
func (t *Target) differing(node *corev1.Node) (v version, found bool) {
	info := &node.Status.NodeInfo
	kubelet := info.KubeletVersion == t.spec.KubeletVersion
	if t.kubelet != nil {
		kubelet = t.kubelet.contains(info.KubeletVersion)
	}
	for _, v := range [...]version{
		{kubelet, "kubelet", info.KubeletVersion, t.spec.KubeletVersion},
		{info.KernelVersion == t.spec.KernelVersion, "kernel", info.KernelVersion, t.spec.KernelVersion},
		{info.OSImage == t.spec.OSImage, "operating system", info.OSImage, t.spec.OSImage},
		{info.ContainerRuntimeVersion == t.spec.ContainerRuntimeVersion, "container runtime", info.ContainerRuntimeVersion, t.spec.ContainerRuntimeVersion},
	} {
		if v.wanted != "" && !v.met {
			return v, true
		}
	}
	return version{}, false
}
