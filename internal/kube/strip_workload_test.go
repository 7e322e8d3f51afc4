package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/kube"
)

func TestStripDeploymentKeepsFieldsOfDecisions(t *testing.T) {
	t.Parallel()
	spec := appsv1.DeploymentSpec{
		Replicas: new(int32(3)), MinReadySeconds: 5, ProgressDeadlineSeconds: new(int32(60)), Paused: true,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
	}
	data := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}
	full := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "shop", UID: "uid",
			Annotations: map[string]string{
				"evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io": "10000/controller",
				"kubectl.kubernetes.io/last-applied-configuration":               "long",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec:   spec,
		Status: appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1},
	}
	full.Spec.Template.Labels = map[string]string{"app": "shop"}
	full.Spec.Template.Spec = corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "scratch"}, data},
		Containers: []corev1.Container{
			{Name: "plain", Image: "plain:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
			{Name: "host", Image: "host:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 81}}},
		},
	}
	want := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "shop", UID: "uid",
			Annotations: map[string]string{"evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io": "10000/controller"},
		},
		Spec:   spec,
		Status: appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 3, AvailableReplicas: 2},
	}
	want.Spec.Template.Spec = corev1.PodSpec{
		Volumes:    []corev1.Volume{data},
		Containers: []corev1.Container{{Name: "host", Ports: []corev1.ContainerPort{{ContainerPort: 81, HostPort: 81}}}},
	}
	if diff := cmp.Diff(want, kube.StripDeployment(full)); diff != "" {
		t.Errorf("cached Deployment (-want +got):\n%s", diff)
	}
}

func TestStripReplicaSetKeepsFieldsOfDecisions(t *testing.T) {
	t.Parallel()
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop", UID: "uid", Controller: new(true)}}
	full := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "shop-abc", UID: "uid-abc", DeletionTimestamp: &birth, Labels: map[string]string{"pod-template-hash": "abc"},
			Annotations: map[string]string{"deployment.kubernetes.io/revision": "7"}, OwnerReferences: owner,
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: new(int32(3)), MinReadySeconds: 5},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 4, Replicas: 3, ReadyReplicas: 2},
	}
	full.Spec.Template.Spec.Containers = []corev1.Container{{Name: "shop", Image: "shop:1"}}
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "shop-abc", UID: "uid-abc", DeletionTimestamp: &birth, Labels: map[string]string{"pod-template-hash": "abc"},
			OwnerReferences: owner,
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: new(int32(3)), MinReadySeconds: 5},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 4, Replicas: 3},
	}
	if diff := cmp.Diff(want, kube.StripReplicaSet(full)); diff != "" {
		t.Errorf("cached ReplicaSet (-want +got):\n%s", diff)
	}
}

func TestSurgingPodsAreIndexed(t *testing.T) {
	t.Parallel()
	const web = `{"pod":"uid-web-0","deployment":{"name":"web","uid":"uid-web"}}`
	tests := map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"detached":      {map[string]string{"ebbtide.dev/surge": web}, []string{"uid-web"}},
		"makes room":    {map[string]string{"ebbtide.dev/surge-replacement": web}, []string{"uid-web"}},
		"both, of two":  {map[string]string{"ebbtide.dev/surge": web, "ebbtide.dev/surge-replacement": `{"deployment":{"uid":"uid-db"}}`}, []string{"uid-web", "uid-db"}},
		"both, of one":  {map[string]string{"ebbtide.dev/surge": web, "ebbtide.dev/surge-replacement": web}, []string{"uid-web"}},
		"of nobody":     {map[string]string{"ebbtide.dev/surge": "{}"}, nil},
		"unreadable":    {map[string]string{"ebbtide.dev/surge": "web"}, nil},
		"anything else": {map[string]string{"evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io": "1"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			if diff := cmp.Diff(test.want, kube.PodSurge(pod)); diff != "" {
				t.Errorf("index (-want +got):\n%s", diff)
			}
		})
	}
}
