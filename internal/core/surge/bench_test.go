package surge_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/goal"
)

// crowd is a Deployment of 5,000 replicas that all have to leave.
func crowd() *surge.Snapshot {
	began := metav1.NewTime(time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC))
	s := &surge.Snapshot{Now: began.Add(time.Minute), Name: "web", Mode: surge.Annotated}
	s.Deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(5000)), MinReadySeconds: 10},
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-hash", UID: "uid-hash", Labels: map[string]string{hashLabel: "hash"}},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(5000))},
	}
	s.ReplicaSets = append(s.ReplicaSets, set)
	for n := range 5000 {
		name := fmt.Sprintf("web-hash-%04d", n)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: began,
			Labels: map[string]string{"app": "web", hashLabel: "hash"}, OwnerReferences: owner(set),
		}}
		setReady(pod, true, began.Time)
		s.Pods = append(s.Pods, pod)
		s.Evacuations = append(s.Evacuations, &v1alpha1.Evacuation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "evacuation-" + name, Finalizers: []string{v1alpha1.NodeMaintenanceInstigator}},
			Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: name, UID: pod.UID}},
			Status: v1alpha1.EvacuationStatus{
				ActiveEvacuatorClass: v1alpha1.DeploymentEvacuatorClass, EvacuationProgressTimestamp: &began,
			},
		})
	}
	return s
}

// follow makes the changes of pods that are decided.
func follow(s *surge.Snapshot) {
	changed := map[types.UID]*corev1.Pod{}
	for _, move := range surge.Decide(*s).Moves {
		for _, write := range move {
			if write.Changed != nil {
				changed[write.Pod.UID] = write.Changed
			}
		}
	}
	for i, pod := range s.Pods {
		if to := changed[pod.UID]; to != nil {
			s.Pods[i] = to
		}
	}
}

// BenchmarkDecide is one decision about 5,000 replicas: when none is detached yet,
// while 1,250 are and have no replacement or one each, and when nobody asks any more.
func BenchmarkDecide(b *testing.B) {
	begin := crowd()
	waiting := crowd()
	follow(waiting)
	replaced := crowd()
	follow(replaced)
	for n, pod := range replaced.Pods {
		if !surge.Detached(pod) {
			continue
		}
		released := *pod
		released.OwnerReferences = nil
		replaced.Pods[n] = &released
		newcomer := pod.DeepCopy()
		newcomer.Annotations, newcomer.Labels[hashLabel] = nil, "hash"
		newcomer.Name, newcomer.UID = pod.Name+"-new", pod.UID+"-new"
		replaced.Pods = append(replaced.Pods, newcomer)
	}
	cancelled := *replaced
	cancelled.Evacuations = nil
	for _, tc := range []struct {
		name     string
		snapshot *surge.Snapshot
		moves    int
	}{{"Begin", begin, 5000}, {"Wait", waiting, 5000}, {"Finish", replaced, 5000}, {"GiveBack", &cancelled, 1250}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			goal.CPU(b, 50*time.Millisecond)
			for b.Loop() {
				if moves := len(surge.Decide(*tc.snapshot).Moves); moves != tc.moves {
					b.Fatalf("%d moves, want %d", moves, tc.moves)
				}
			}
		})
	}
}
