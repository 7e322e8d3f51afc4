package webhook

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// The metric by which an alert warns of the end of a certificate is about the one that is served.
func TestExpiryOfTheServedCertificateIsAMetric(t *testing.T) {
	t.Parallel()
	served := &certificateWatch{Certificate: &Certificate{}, log: logr.Discard()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(served)
	if got := gathered(t, registry); got != 0 {
		t.Errorf("without a certificate there is a metric, %v", got)
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("ebbtide-webhook.tides.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	served.take(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}})
	served.take(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: crt}})
	want := time.Now().AddDate(1, 0, 0).Unix()
	if got := gathered(t, registry); got < want-7*86400 || got > want+7*86400 {
		t.Errorf("it expires at %d, want %d and a few days", got, want)
	}
}

func gathered(t *testing.T, registry *prometheus.Registry) int64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "ebbtide_webhook_certificate_expiry_timestamp_seconds" {
			return int64(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return 0
}
