package webhook

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// madeUp is an eviction that nobody has asked the API server for.
func madeUp(t *testing.T, pod metav1.Object, user string) []byte {
	t.Helper()
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: pod.GetNamespace(), Name: pod.GetName(),
			UserInfo: authenticationv1.UserInfo{Username: user},
			Object:   runtime.RawExtension{Raw: []byte(`{"apiVersion":"policy/v1","kind":"Eviction"}`)},
		},
	})
	must(t, err)
	return review
}

// post sends a review to the port of the webhooks past the API server.
func post(t *testing.T, certificates []tls.Certificate, review []byte) (answer string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+started.address+"/validate/evictions", bytes.NewReader(review))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return string(body), nil
}

// A pod that reaches the port makes up an eviction by an administrator.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20"))
	review := madeUp(t, pod, "system:admin")
	for caller, certificates := range map[string][]tls.Certificate{
		"without a certificate": nil,
		"with one of its own":   {sample.Certificate(t, "kube-apiserver-webhook-client")},
	} {
		answer, err := post(t, certificates, review)
		if err == nil || !strings.Contains(err.Error(), "tls: ") {
			t.Errorf("a caller %s is answered %q, error %v; want no connection", caller, answer, err)
		}
	}
	if e := evacuationOf(t, c, pod); e != nil {
		t.Errorf("a made-up eviction has asked for an evacuation: %+v", e)
	}
	wantToWait(t, evict(t, c, pod), "mover.example.com is asked to move pod web")
}

// Whatever node joins, or is relabelled, is not there for a review.
func TestMaintenanceOfLaterNodesNeedsTheRightForThem(t *testing.T) {
	c := newAPI(t)
	nodes := newNodes(t, c, 2, nil)
	name, user := c.User(t, maintains, deletes(nodes[0], "one-day"))
	var today corev1.NodeList
	must(t, c.Client.List(t.Context(), &today))
	var others []string
	for _, node := range today.Items {
		if node.Name != nodes[0] {
			others = append(others, node.Name)
		}
	}
	m := sample.Maintenance(c.Pool() + "-later")
	m.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: others},
	}}}
	refusal := fmt.Sprintf("user %q may not delete every node, and a NodeMaintenance that selects nodes by labels, or all but some, takes nodes that come later", name)
	wantRefused(t, user.Create(t.Context(), m.DeepCopy()), refusal)
	m.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{sample.NodeTerm(corev1.NodeSelectorOpNotIn, nodes[1])}
	wantRefused(t, user.Create(t.Context(), m.DeepCopy()), refusal)

	m = sample.Maintenance(c.Pool()+"-later", nodes[0], "one-day")
	must(t, user.Create(t.Context(), m))
	m.Spec.NodeSelector = sample.Maintenance("", nodes[0], "another-day").Spec.NodeSelector
	wantRefused(t, user.Update(t.Context(), m.DeepCopy()), fmt.Sprintf("user %q may not delete node another-day,", name))
	must(t, user.Delete(t.Context(), m))
}
