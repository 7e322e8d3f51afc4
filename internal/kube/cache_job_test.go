package kube_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/patience"
)

func jobOf(labels map[string]string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "patch", UID: "job", ResourceVersion: "1", Labels: labels},
	}
}

// A namespace whose Jobs cannot be read holds up nobody. When the right is there, they are known.
func TestJobsOfANamespaceWithoutRightsAreUnknown(t *testing.T) {
	t.Parallel()
	var allowed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		selected := r.URL.Path == "/apis/batch/v1/namespaces/ops/jobs" && r.URL.Query().Get("labelSelector") == v1alpha1.RolloutLabel
		switch {
		case !selected || !allowed.Load():
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Query().Get("watch") != "":
			job, end := jobOf(nil), jobOf(nil)
			end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": job})
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": end})
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			list := batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, Items: []batchv1.Job{*jobOf(nil)}}
			list.ResourceVersion = "1"
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(server.Close)
	mgr, err := manager.New(&rest.Config{Host: server.URL}, manager.Options{
		Scheme: clientgoscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, kind := range []string{"Job", "JobList"} {
				mapper.Add(batchv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
			}
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	changed, ready := make(chan string, 10), make(chan struct{})
	reader, synced, err := kube.CacheJobs(t.Context(), mgr, "ops", kube.OnInform(func(_, now *batchv1.Job) { changed <- now.Name }), func() { close(ready) })
	if err != nil || synced() {
		t.Fatalf("without the right it is synced %t, %v", synced(), err)
	}
	allowed.Store(true)
	patience.Eventually(t, "the Jobs are known", func(context.Context) (string, bool) { return "unknown", synced() })
	<-ready
	var list batchv1.JobList
	if err := reader.List(t.Context(), &list, client.InNamespace("ops")); err != nil || len(list.Items) != 1 || !synced() || <-changed != "patch" {
		t.Errorf("with the right it has %d Jobs, %v", len(list.Items), err)
	}
}

func TestStrippedJobIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	job := jobOf(map[string]string{"a": long})
	job.Annotations = map[string]string{v1alpha1.BootIDAnnotation: long, "a": long}
	ours := metav1.OwnerReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeMaintenance", Name: "m", UID: "m"}
	job.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: long}, ours, ours}
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: "Other", Status: corev1.ConditionTrue, Message: long},
		{Type: batchv1.JobComplete, Status: corev1.ConditionFalse},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: long},
	}
	got := kube.StripJob(job)
	if text, _ := json.Marshal(got); len(text) > 2000 || got.OwnerReferences[0] != ours || got.Status.Conditions[0].Type != batchv1.JobFailed {
		t.Errorf("%d bytes are left: %.500s", len(text), text)
	}
	job.Annotations[v1alpha1.BootIDAnnotation] = "boot"
	if got := kube.StripJob(job); got.Annotations[v1alpha1.BootIDAnnotation] != "boot" {
		t.Errorf("the boot is lost: %v", got.Annotations)
	}
}
