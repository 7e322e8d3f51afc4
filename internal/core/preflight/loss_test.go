package preflight_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/difference"
)

// byJob has a pod be one of a Job.
func byJob(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(name) }
}

func jobOf(name string, backoffLimit int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: batchv1.JobSpec{BackoffLimit: &backoffLimit}}
}

func TestPlanShowsLostPods(t *testing.T) {
	pod := func(name, owner string, changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "owner", Controller: &yes}}
		}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	scratch := func(names ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, name := range names {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
		}
	}
	got := preflight.LossOf([]*corev1.Pod{
		pod("web", "ReplicaSet"),
		pod("search", "StatefulSet", scratch("index", "tmp")),
		pod("debug", "", scratch("dump")),
		pod("bare", ""),
		pod("logs", "DaemonSet", scratch("buffer")),
		pod("etcd", "", scratch("data"), func(p *corev1.Pod) { podclass.MakeMirror(p, "node") }),
		pod("done", "", scratch("data"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("import", "Job", byJob("import")),
		pod("retried", "Job", byJob("retried")),
		pod("kept", "", scratch("data"), func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.DrainLabel: "Skip"} }),
	}, []*batchv1.Job{jobOf("import", 0), jobOf("retried", 3)})
	want := preflight.Loss{
		Data:       []string{"shop/debug (emptyDir volume dump)", "shop/search (emptyDir volume index, emptyDir volume tmp)"},
		Unreplaced: []string{"shop/bare", "shop/debug"},
		Failed:     []string{"shop/import (Job import has failed for good then: its backoffLimit is 0)"},
	}
	difference.None(t, "loss", want, got)
}
