package certificate

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the writer of the authorities, in the managed fields of the configurations.
const fieldOwner = client.FieldOwner("ebbtide-certificate")

// trust replaces what each webhook of the configurations that exist trusts by what next returns
// for it, and returns true if that was something else.
func (h Hook) trust(ctx context.Context, next func(bundle []byte) []byte) (changed bool, err error) {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		// A typed object would lose the fields that only later versions of Kubernetes know.
		configuration := &unstructured.Unstructured{}
		configuration.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		err := h.Client.Get(ctx, client.ObjectKey{Name: ConfigurationName}, configuration)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return changed, fmt.Errorf("get %s %s: %w", kind, ConfigurationName, err)
		}
		differs, err := replace(configuration, next)
		if err != nil {
			return changed, fmt.Errorf("read %s %s: %w", kind, ConfigurationName, err)
		}
		if !differs {
			continue
		}
		if err := h.Client.Update(ctx, configuration, fieldOwner); err != nil {
			return changed, fmt.Errorf("write %s %s: %w", kind, ConfigurationName, err)
		}
		changed = true
	}
	return changed, nil
}

// replace replaces the authorities in a configuration.
func replace(configuration *unstructured.Unstructured, next func(bundle []byte) []byte) (differs bool, err error) {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return false, err
	}
	for i := range webhooks {
		webhook, ok := webhooks[i].(map[string]any)
		if !ok {
			return false, fmt.Errorf("webhook %d is no object", i)
		}
		text, _, err := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		if err != nil {
			return false, err
		}
		bundle, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return false, err
		}
		trusted := next(bundle)
		differs = differs || !bytes.Equal(bundle, trusted)
		if err := unstructured.SetNestedField(webhook, base64.StdEncoding.EncodeToString(trusted), "clientConfig", "caBundle"); err != nil {
			return false, err
		}
	}
	return differs, unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}
