package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Kinds of Ebbtide's objects besides its CRDs.
var (
	mutating   = kind{name: "MutatingWebhookConfiguration", resource: "mutatingwebhookconfigurations.admissionregistration.k8s.io"}
	validating = kind{name: "ValidatingWebhookConfiguration", resource: "validatingwebhookconfigurations.admissionregistration.k8s.io"}
	leases     = kind{
		name: "Lease", resource: "leases.coordination.k8s.io",
		list: func() client.ObjectList { return &coordinationv1.LeaseList{} },
	}
	secrets    = kind{name: "Secret", resource: "secrets"}
	configMaps = kind{name: "ConfigMap", resource: "configmaps"}
)

// deleted returns the finding of an object that is deleted.
func deleted(object trace.Object) trace.Finding {
	return trace.Finding{Object: object, Delete: true, Does: []string{"delete it"}}
}

// lookFor returns the group of these objects that exist and are ours.
func (s *surveyor) lookFor(ctx context.Context, k kind, ours func(client.Object) bool, objects ...client.Object) group {
	g := group{kind: k}
	for _, object := range objects {
		switch err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err):
		case err != nil:
			g.err = fmt.Errorf("get %s: %w", k.resource, err)
		case ours(object):
			g.findings = append(g.findings, deleted(object))
		}
	}
	return g
}

// webhooks returns our webhook configurations and the namespaces of their Services.
func (s *surveyor) webhooks(ctx context.Context) (groups []group, namespaces []string) {
	m, v := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	m.Name, v.Name = certificate.ConfigurationName, certificate.ConfigurationName
	ours := func(name string, config admissionregistrationv1.WebhookClientConfig) bool {
		own := strings.HasSuffix(name, "."+v1alpha1.SchemeGroupVersion.Group)
		if own && config.Service != nil && !slices.Contains(namespaces, config.Service.Namespace) {
			namespaces = append(namespaces, config.Service.Namespace)
		}
		return own
	}
	return []group{
		s.lookFor(ctx, mutating, func(client.Object) bool {
			return slices.ContainsFunc(m.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return ours(w.Name, w.ClientConfig) })
		}, m),
		s.lookFor(ctx, validating, func(client.Object) bool {
			return slices.ContainsFunc(v.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return ours(w.Name, w.ClientConfig) })
		}, v),
	}, namespaces
}

// leaderLeases returns the Leases of leaders in all namespaces.
func (s *surveyor) leaderLeases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	err := s.client.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: kube.LeaderLease})
	return list.Items, err
}

// leader describes the current holder of a Lease; empty if it has expired.
func leader(lease *coordinationv1.Lease, now time.Time) string {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return ""
	}
	ends := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	if !now.Before(ends) {
		return ""
	}
	return fmt.Sprintf("%s, in namespace %s until %s unless it is renewed",
		excerpt.Line(*spec.HolderIdentity, 100), lease.Namespace, ends.UTC().Format(time.RFC3339))
}

// own returns the objects that managers and this program have created; Helm removes its own.
func (s *surveyor) own(ctx context.Context, namespaces []string) []group {
	all := make([]group, 0, 3*len(namespaces)+1)
	all = append(all, s.lookFor(ctx, leases, notHelms, requestLease()))
	for _, namespace := range namespaces {
		meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
		all = append(all,
			s.lookFor(ctx, leases, notHelms,
				&coordinationv1.Lease{ObjectMeta: meta(v1alpha1.DrainLockMutex)}, &coordinationv1.Lease{ObjectMeta: meta(kube.LeaderLease)}),
			s.lookFor(ctx, secrets, notHelms, metadataOf("Secret", meta(certificate.SecretName)), metadataOf("Secret", meta(certificate.EarlierSecretName))),
			s.lookFor(ctx, configMaps, notHelms, metadataOf("ConfigMap", meta(guardName))),
		)
	}
	return all
}

// requestLease returns the Lease of the EvictionRequest controller.
func requestLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: evictionrequest.LeaseNamespace, Name: evictionrequest.Lease}}
}

// metadataOf returns an object without its spec.
func metadataOf(kind string, meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// notHelms reports whether an object is not Helm's.
func notHelms(object client.Object) bool {
	return object.GetLabels()["app.kubernetes.io/managed-by"] != "Helm"
}
