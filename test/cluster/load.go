package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricsAPI is where the API of resource metrics is, of which autoscalers ask.
const metricsAPI = "/apis/metrics.k8s.io/v1beta1"

// Load is work that the ready pods of an application share evenly. What they have
// to do shows as the memory that they use.
type Load struct {
	client client.Client
	bytes  atomic.Int64
}

// ServeLoad has the API server offer resource metrics that tell of a load, at first
// of none, until the test ends. A control plane has room for one test that does so.
func (c *Cluster) ServeLoad(t testing.TB, namespace string) *Load {
	t.Helper()
	l := &Load{client: c.Client}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsAPI, l.discover)
	mux.HandleFunc("GET "+metricsAPI+"/namespaces/{namespace}/pods", l.metrics)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	// There is no network of Services, but a name outside of the cluster is called as it is.
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "metrics"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	registration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": namespace, "name": service.Name, "port": port},
		},
	}}
	for _, object := range []client.Object{service, registration} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("offer metrics: %v", err)
		}
		// An API that does not answer would keep namespaces from being deleted.
		c.undo(t, func(ctx context.Context) {
			if err := c.remove(ctx, object); err != nil {
				t.Errorf("take metrics back: %v", err)
			}
		})
	}
	return l
}

// Set changes the load.
func (l *Load) Set(bytes int64) { l.bytes.Store(bytes) }

func (l *Load) discover(response http.ResponseWriter, _ *http.Request) {
	send(response, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: "metrics.k8s.io/v1beta1",
		APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Kind: "PodMetrics", Verbs: metav1.Verbs{"get", "list"}}},
	})
}

func (l *Load) metrics(response http.ResponseWriter, request *http.Request) {
	selector, err := labels.Parse(request.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	pods := &corev1.PodList{}
	err = l.client.List(request.Context(), pods, client.InNamespace(request.PathValue("namespace")), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	var ready []string
	for i := range pods.Items {
		if serves(&pods.Items[i]) {
			ready = append(ready, pods.Items[i].Name)
		}
	}
	items := []any{}
	for _, name := range ready {
		items = append(items, map[string]any{
			"metadata":  map[string]any{"namespace": request.PathValue("namespace"), "name": name},
			"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1s",
			"containers": []any{map[string]any{
				"name": "app", "usage": map[string]any{"memory": strconv.FormatInt(l.bytes.Load()/int64(len(ready)), 10)},
			}},
		})
	}
	send(response, map[string]any{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "metadata": map[string]any{}, "items": items})
}

// serves says whether a pod gets a share of the load.
func serves(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func send(response http.ResponseWriter, answer any) {
	response.Header().Set("Content-Type", "application/json")
	// Who does not read the answer asks again.
	_ = json.NewEncoder(response).Encode(answer)
}
