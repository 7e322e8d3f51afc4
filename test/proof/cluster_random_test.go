package proof

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

const (
	zoneLabel = "topology.kubernetes.io/zone"
	diskLabel = "disk"
	gpu       = corev1.ResourceName("example.com/gpu")
)

// scheduling draws small clusters and pods in which everything that a scheduler looks
// at is scarce.
type scheduling struct {
	*rand.Rand
	pool       string
	namespaces []string
}

func (s *scheduling) chance(percent int) bool { return s.IntN(100) < percent }

func oneOf[T any](s *scheduling, of ...T) T { return of[s.IntN(len(of))] }

func (s *scheduling) node(name string) *corev1.Node {
	n := sandbox.NewNode(name, map[string]string{cluster.PoolLabel: s.pool})
	if s.chance(85) {
		n.Labels[zoneLabel] = oneOf(s, "a", "b", "c")
	}
	if s.chance(60) {
		n.Labels[diskLabel] = oneOf(s, "ssd", "hdd")
	}
	if s.chance(20) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: oneOf(s, "gpu", "db"), Value: oneOf(s, "", "yes"), Effect: oneOf(s, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule),
		})
	}
	n.Spec.Unschedulable = s.chance(12)
	all := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(500*int64(1+s.IntN(6)), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(1+s.IntN(4))<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(2+s.IntN(6)), resource.DecimalSI),
	}
	if s.chance(30) {
		all[gpu] = *resource.NewQuantity(int64(1+s.IntN(2)), resource.DecimalSI)
	}
	n.Status.Allocatable, n.Status.Capacity = all, all.DeepCopy()
	return n
}

// team is a label of a namespace. Those of other tests have others.
func (s *scheduling) team(i int) string { return fmt.Sprintf("%s-%d", s.pool, i) }

func (s *scheduling) labels() map[string]string {
	all := map[string]string{"app": oneOf(s, "web", "db", "batch")}
	if s.chance(40) {
		all["revision"] = oneOf(s, "1", "2")
	}
	return all
}

func (s *scheduling) selector() *metav1.LabelSelector {
	if s.chance(20) {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{oneOf(s, "web", "db")}},
		}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": oneOf(s, "web", "db", "batch")}}
}

// pod draws one that asks for a few of the things that there are.
func (s *scheduling) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneOf(s, s.namespaces...), Name: name, UID: types.UID(name), Labels: s.labels()},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "app", Image: "app", Resources: s.requests()}},
		},
	}
	s.containers(&pod.Spec)
	s.whichNodes(&pod.Spec)
	s.whichPods(pod)
	if s.chance(12) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("data-%d", s.IntN(claims))},
		}}}
	}
	return pod
}

func (s *scheduling) requests() corev1.ResourceRequirements {
	all := corev1.ResourceList{}
	if s.chance(80) {
		all[corev1.ResourceCPU] = *resource.NewMilliQuantity(100*int64(1+s.IntN(8)), resource.DecimalSI)
	}
	if s.chance(50) {
		all[corev1.ResourceMemory] = *resource.NewQuantity(int64(1+s.IntN(10))<<27, resource.BinarySI)
	}
	if s.chance(10) {
		all[gpu] = resource.MustParse("1")
		return corev1.ResourceRequirements{Requests: all, Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}
	}
	return corev1.ResourceRequirements{Requests: all}
}

func (s *scheduling) containers(spec *corev1.PodSpec) {
	if s.chance(20) {
		init := corev1.Container{Name: "init", Image: "init", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(100*int64(1+s.IntN(12)), resource.DecimalSI),
		}}}
		if s.chance(50) {
			init.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = []corev1.Container{init}
	}
	if s.chance(10) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{
			ContainerPort: 80, HostPort: 8080, Protocol: oneOf(s, corev1.ProtocolTCP, corev1.ProtocolUDP), HostIP: oneOf(s, "", "", "127.0.0.1"),
		}}
	}
}

func (s *scheduling) whichNodes(spec *corev1.PodSpec) {
	if s.chance(15) {
		spec.NodeSelector = map[string]string{diskLabel: oneOf(s, "ssd", "hdd")}
	}
	if s.chance(15) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: zoneLabel, Operator: oneOf(s, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{oneOf(s, "a", "b", "c")},
			}}}},
		}}}
	}
	if s.chance(30) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: oneOf(s, "gpu", "db"), Operator: corev1.TolerationOpExists})
	}
	if s.chance(8) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
	}
}

func (s *scheduling) whichPods(pod *corev1.Pod) {
	spec := &pod.Spec
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if s.chance(15) {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.terms(pod)}
	}
	if s.chance(20) {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.terms(pod)}
	}
	for _, key := range []string{zoneLabel, corev1.LabelHostname} {
		if s.chance(15) {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, s.constraint(key, pod))
		}
	}
}

func (s *scheduling) terms(pod *corev1.Pod) (all []corev1.PodAffinityTerm) {
	for range 1 + s.IntN(5)/4 {
		term := corev1.PodAffinityTerm{TopologyKey: oneOf(s, zoneLabel, corev1.LabelHostname), LabelSelector: s.selector()}
		switch s.IntN(8) {
		case 0:
			term.Namespaces = []string{oneOf(s, s.namespaces...)}
		case 1:
			term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": s.team(s.IntN(3))}}
		case 2:
			// All namespaces would be those of other tests, too.
			term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{cluster.PoolLabel: s.pool}}
		case 3:
			if pod.Labels["revision"] != "" {
				term.MatchLabelKeys = []string{"revision"}
			}
		}
		all = append(all, term)
	}
	return all
}

func (s *scheduling) constraint(key string, pod *corev1.Pod) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		TopologyKey: key, MaxSkew: int32(1 + s.IntN(2)), LabelSelector: s.selector(),
		WhenUnsatisfiable: oneOf(s, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
	}
	if c.WhenUnsatisfiable == corev1.DoNotSchedule && s.chance(25) {
		c.MinDomains = new(int32(1 + s.IntN(3)))
	}
	if s.chance(30) {
		c.NodeAffinityPolicy = new(oneOf(s, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if s.chance(30) {
		c.NodeTaintsPolicy = new(oneOf(s, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if pod.Labels["revision"] != "" && s.chance(25) {
		c.MatchLabelKeys = []string{"revision"}
	}
	return c
}

// claims is how many claims each namespace has: the first two are bound already.
const claims = 5

func (s *scheduling) storageClass(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

func (s *scheduling) volume(name, class string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(1+s.IntN(4))<<30, resource.BinarySI)},
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: name}},
	}}
	if s.chance(40) {
		v.Labels = map[string]string{zoneLabel: oneOf(s, "a", "b", "a__c")}
	} else {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{oneOf(s, "a", "b", "c")}}},
		}}}}
	}
	return v
}

func (s *scheduling) claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: *resource.NewQuantity(int64(1+s.IntN(3))<<30, resource.BinarySI),
		}},
	}}
}
