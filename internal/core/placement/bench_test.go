package placement_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/test/goal"
)

const (
	manyNodes = 1000
	manyPods  = 20000
)

// specs are those of a cluster that has been lived in.
var specs = []string{
	asking("cpu: 100m, memory: 128Mi"),
	asking("cpu: 200m, memory: 64Mi"),
	asking("cpu: 50m") + "\ntolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]",
	asking("cpu: 100m, memory: 1Gi") + "\nnodeSelector: {disk: ssd}",
	asking("cpu: 100m") + "\naffinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}",
	asking("cpu: 100m") + "\ntopologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: %s}}}]",
	asking("cpu: 100m") + "\naffinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: %s}}}]}}",
	asking("cpu: 100m, memory: 256Mi") + "\nvolumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]",
}

// lived is a cluster of 1,000 nodes and 20,000 pods of 1,000 owners.
func lived() placement.World {
	var w placement.World
	for i := range manyNodes {
		disk := []string{"ssd", "hdd"}[i%2]
		w.Nodes = append(w.Nodes, newNode(fmt.Sprintf("node-%d", i), fmt.Sprintf("zone=%c,disk=%s", 'a'+i%3, disk),
			offers("cpu", "64"), offers("memory", "256Gi"), offers("pods", "110")))
	}
	for owner := range manyPods / 20 {
		spec := specs[owner%len(specs)]
		app := fmt.Sprintf("app-%d", owner)
		if owner%len(specs) >= 4 {
			spec = fmt.Sprintf(spec, app)
		}
		first := newPod("", "", "app="+app, spec)
		for i := range 20 {
			pod := first.DeepCopy()
			pod.Name = fmt.Sprintf("%s-%d", app, i)
			pod.UID = types.UID(pod.Name)
			pod.Spec.NodeName = w.Nodes[(owner*20+i*7)%manyNodes].Name
			if len(pod.Spec.Volumes) > 0 {
				pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
				pod.Spec.Volumes = []corev1.Volume{*pod.Spec.Volumes[0].DeepCopy()}
				pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = pod.Name
				w.Claims = append(w.Claims, read[corev1.PersistentVolumeClaim](fmt.Sprintf(
					"{metadata: {namespace: shop, name: %s, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: %s}}", pod.Name, pod.Name)))
				w.Volumes = append(w.Volumes, read[corev1.PersistentVolume](fmt.Sprintf("{metadata: {name: %s}, spec: {%s}}", pod.Name, onB)))
			}
			w.Pods = append(w.Pods, pod)
		}
	}
	return w
}

// all leave each its node, and are placed on half of them.
func (m *measured) all(b *testing.B, w placement.World, half bool) {
	e := placement.New(w)
	for i, n := range w.Nodes {
		if !half || i%2 == 0 {
			e.Cordon(n.Name)
		}
	}
	for _, pod := range w.Pods {
		e.Remove(pod)
		if _, why := e.Place(pod); why != "" {
			m.unplaced++
		}
	}
	if half && m.unplaced > manyPods/2 || !half && m.unplaced != manyPods {
		b.Fatalf("%d pods of %d fit nowhere", m.unplaced, manyPods)
	}
	m.kept = e
}

type measured struct {
	unplaced int
	kept     *placement.Estimate
}

func BenchmarkPlaceAll(b *testing.B) { benchmark(b, true) }

func BenchmarkPlaceNone(b *testing.B) { benchmark(b, false) }

func benchmark(b *testing.B, half bool) {
	w := lived()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var m measured
	goal.Time(b, time.Second)
	for b.Loop() {
		m = measured{}
		m.all(b, w, half)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "kept-MiB")
	b.ReportMetric(float64(m.unplaced), "unplaced")
	runtime.KeepAlive(m.kept)
	runtime.KeepAlive(w)
}
