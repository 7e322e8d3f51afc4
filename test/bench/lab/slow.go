package lab

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Slow is what a webhook makes slow in the namespace of the pods that are refused.
type Slow string

const (
	// SlowEvictions are evictions of pods.
	SlowEvictions Slow = "pods/eviction"
	// SlowEvacuations are creations of Evacuations.
	SlowEvacuations Slow = "evacuations"
	// SlowSurges are changes of pods, which then belong to a Deployment each and surge.
	SlowSurges Slow = "pods"
)

// rule matches the requests that are slow.
func (s Slow) rule() admissionregistrationv1.RuleWithOperations {
	group, operation := "", admissionregistrationv1.Create
	switch s {
	case SlowEvacuations:
		group = v1alpha1.SchemeGroupVersion.Group
	case SlowSurges:
		operation = admissionregistrationv1.Update
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{string(s)}},
	}
}

// slowFor is how long the webhook takes. Then it refuses.
const slowFor = 9 * time.Second

// webhook is slow until it is ended.
type webhook struct {
	server *httptest.Server
	hook   *admissionregistrationv1.ValidatingWebhookConfiguration
	ended  chan struct{}
}

// addWebhook makes requests in the namespace of the refused pods slow.
func (l *Lab) addWebhook(ctx context.Context, load *Load) error {
	w := &webhook{ended: make(chan struct{})}
	w.server = httptest.NewTLSServer(w)
	load.slow = w
	w.hook = &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: load.refusing()},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "slow.example.com", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(slowFor/time.Second + 1)),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(w.server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: load.refusing()}},
			Rules:             []admissionregistrationv1.RuleWithOperations{load.work.Slow.rule()},
		}},
	}
	return create(ctx, l.Client, w.hook)
}

// ServeHTTP refuses after a while.
func (w *webhook) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-w.ended:
	case <-request.Context().Done():
	case <-time.After(slowFor):
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID}
	_ = json.NewEncoder(answer).Encode(review)
}

// removeWebhook lets the refused pods go.
func (l *Lab) removeWebhook(ctx context.Context, load *Load) error {
	w := load.slow
	if w == nil {
		return nil
	}
	load.slow = nil
	err := client.IgnoreNotFound(l.Client.Delete(ctx, w.hook))
	close(w.ended)
	w.server.Close()
	if err != nil {
		return errors.Join(errors.New("delete the slow webhook"), err)
	}
	return nil
}
