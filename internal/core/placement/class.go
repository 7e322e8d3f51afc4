package placement

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// class are pods that are equal to the scheduler.
type class struct {
	problem     string // why they get no node, whatever nodes there are
	site        *site
	request     []amount
	cpu, memory int64
	ports       []port
	kin         *kin
	affinity    []*term
	anti        []*term
	spread      []spread
	volumes

	// The last search that found nothing.
	failed   string
	failedAt int
}

// local reports whether only room and cordons change whether these pods fit on a node.
func (c *class) local() bool {
	return len(c.affinity) == 0 && len(c.anti) == 0 && len(c.spread) == 0 && len(c.kin.refusedBy) == 0 && len(c.claims) == 0
}

func (e *Estimate) classOf(pod *corev1.Pod) *class {
	request, cpu, memory := e.requestOf(pod, helper.PodResourcesOptions{})
	siteKey := appendSite(nil, pod)
	key := appendRest(siteKey, pod, request)
	c := e.classes[string(key)]
	if c != nil {
		return c
	}
	c = &class{request: request, cpu: cpu, memory: memory, ports: portsOf(pod), kin: e.kinOf(pod)}
	e.classes[string(key)] = c
	if c.problem = foreign(pod); c.problem != "" {
		return c
	}
	site := string(siteKey)
	c.site = e.siteOf(pod, site)
	c.spread = e.spreadsOf(pod, c.site, site, c.kin)
	c.anti = e.antiTerms(pod)
	if c.affinity, c.problem = e.affinityTerms(pod); c.problem != "" {
		return c
	}
	c.volumes, c.problem = e.volumesOf(pod)
	return c
}

// foreign returns why the default scheduler, as it is known here, does not decide on a pod.
func foreign(pod *corev1.Pod) string {
	switch name := pod.Spec.SchedulerName; {
	case name != "" && name != corev1.DefaultSchedulerName:
		return unknownPrefix + "the scheduler " + excerpt.Line(name, maxDetail) + " decides, and this estimate knows only that of Kubernetes"
	case len(pod.Spec.ResourceClaims) > 0:
		return unknownPrefix + "it claims devices (resourceClaims), which this estimate does not look at"
	case len(pod.Spec.SchedulingGates) > 0:
		return "it is not scheduled before its gate " + excerpt.Line(pod.Spec.SchedulingGates[0].Name, maxDetail) + " is removed"
	}
	return ""
}

// appendSite returns what a pod says about nodes.
func appendSite(to []byte, pod *corev1.Pod) []byte {
	to = appendMap(to, pod.Spec.NodeSelector)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		to = appendObject(to, a.NodeAffinity)
	}
	to = append(to, 0)
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		for _, text := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			to = appendText(to, text)
		}
	}
	return append(to, 0)
}

func appendRest(to []byte, pod *corev1.Pod, request []amount) []byte {
	to = slices.Clone(to)
	to = appendText(to, pod.Namespace)
	to = appendMap(to, pod.Labels)
	to = appendText(to, foreign(pod))
	for _, a := range request {
		to = binary.AppendVarint(binary.AppendVarint(to, int64(a.resource)), a.value)
	}
	to = append(to, 0)
	for _, p := range portsOf(pod) {
		to = appendText(binary.AppendVarint(appendText(to, p.address), int64(p.number)), string(p.protocol))
	}
	to = append(to, 0)
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			to = appendObject(to, a.PodAffinity)
		}
		to = append(to, 0)
		if a.PodAntiAffinity != nil {
			to = appendObject(to, a.PodAntiAffinity)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		to = appendObject(to, &pod.Spec.TopologySpreadConstraints[i])
	}
	to = append(to, 0)
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			to = appendText(to, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			to = appendObject(to, v.Ephemeral.VolumeClaimTemplate)
		}
	}
	return to
}

// appendObject appends what an object is on the wire, where maps are sorted.
func appendObject(to []byte, object interface{ Marshal() ([]byte, error) }) []byte {
	bytes, err := object.Marshal()
	if err != nil {
		// Objects of the API server can be written as they were read.
		panic(err)
	}
	return append(binary.AppendUvarint(to, uint64(len(bytes))+1), bytes...)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))+1), text...)
}

func appendMap(to []byte, pairs map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		to = appendText(appendText(to, key), pairs[key])
	}
	return append(to, 0)
}
