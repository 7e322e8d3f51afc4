package proof

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

// stage is the cluster of a plot.
type stage struct {
	*world
	plot
	names []string
}

// setUp builds the cluster of a plot on nodes of its own.
func setUp(t *testing.T, p plot) *stage {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{})
	s := &stage{world: &world{t: t, cluster: c, client: c.Client, namespace: c.Namespace(t)}, plot: p}
	for i, n := range p.nodes {
		s.names = append(s.names, s.node(i, n))
	}
	for i, b := range p.budgets {
		s.create(&policyv1.PodDisruptionBudget{ObjectMeta: s.named(fmt.Sprintf("budget%d", i)), Spec: b})
	}
	for _, a := range p.apps {
		s.create(s.owner(a))
	}
	return s
}

func (s *stage) node(i int, n place) string {
	name := fmt.Sprintf("%s-n%d", s.cluster.Pool(), i)
	node := sandbox.NewNode(name, map[string]string{cluster.PoolLabel: s.cluster.Pool(), corev1.LabelTopologyZone: n.zone, "disk": n.disk})
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n.cpu), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	node.Status.Capacity, node.Status.Allocatable = room, room
	if n.tainted {
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
	}
	s.cluster.ForgetNodes(s.t, name)
	s.create(node)
	return name
}

func (s *stage) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"app": name}}
}

// owner is the object that makes the pods.
func (s *stage) owner(a cast) client.Object {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
	template := s.template(a)
	switch a.kind {
	case "Deployment":
		d := &appsv1.Deployment{ObjectMeta: s.named(a.name), Spec: appsv1.DeploymentSpec{
			Replicas: &a.replicas, Selector: selector, Template: template, ProgressDeadlineSeconds: new(int32(5)),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &a.maxSurge, MaxUnavailable: new(intstr.FromInt32(1))}},
		}}
		if a.recreate {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}
		if a.surges {
			d.Annotations = map[string]string{v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass: "10000/controller"}
			// A forecast does not wait until a surge is given up.
			d.Spec.ProgressDeadlineSeconds = new(int32(36000))
		}
		return d
	case "StatefulSet":
		set := &appsv1.StatefulSet{ObjectMeta: s.named(a.name), Spec: appsv1.StatefulSetSpec{Replicas: &a.replicas, Selector: selector, Template: template, ServiceName: a.name}}
		if a.parallel {
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}
		return set
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: s.named(a.name), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
	case "Job":
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{ObjectMeta: s.named(a.name), Spec: batchv1.JobSpec{
			Parallelism: &a.replicas, Completions: new(int32(100)), BackoffLimit: new(int32(50)), Template: template,
		}}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: a.name, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
}

func (s *stage) template(a cast) corev1.PodTemplateSpec {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
	t := corev1.PodTemplateSpec{
		// A pod of a Job runs until it is done, which it never is.
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": a.name, "tier": a.tier}, Annotations: map[string]string{sandbox.CompleteAfter: "10h"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), NodeSelector: map[string]string{cluster.PoolLabel: s.cluster.Pool()}, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(a.cpu)},
			}}},
		},
	}
	if a.kind != "Job" {
		t.Annotations = map[string]string{}
	}
	if a.label != "" {
		t.Labels[v1alpha1.DrainLabel] = a.label
	}
	if a.neverReady {
		t.Annotations[sandbox.ReadyAfter] = "10h"
	}
	if a.disk != "" {
		t.Spec.NodeSelector["disk"] = a.disk
	}
	if a.tolerates {
		t.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if a.apart {
		t.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: selector},
		}}}
	}
	if a.spread != "" {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: a.spread, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector},
		}
	}
	return t
}
