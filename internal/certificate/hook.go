package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The rights of the account that the hooks of the chart run under.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=release
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=ebbtide-webhook-tls;ebbtide-webhook-certificate,verbs=get;update,namespace=release
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=ebbtide,verbs=get;update

// Phase of the Helm release that runs the hook.
type Phase string

const (
	// Before Helm installs, upgrades or rolls back.
	Before Phase = "before"
	// After it has.
	After Phase = "after"
)

// ParsePhase reads the value of a flag.
//
// Errors: it is none of the phases.
func ParsePhase(text string) (Phase, error) {
	switch phase := Phase(text); phase {
	case Before, After:
		return phase, nil
	}
	return "", errors.New("must be before or after")
}

// Hook makes the certificate of the webhooks and has the API server trust it.
type Hook struct {
	// Client is the client of the account of the hook.
	Client client.Client
	// Namespace is the namespace of the managers.
	Namespace string
	// Heard is the time in which API servers see a change of the webhook configurations.
	Heard time.Duration
	// Now returns the current time.
	Now func() time.Time
	// Out gets a line for each change.
	Out io.Writer
}

// Run runs a phase, again if another run has written in between.
//
// Errors: something cannot be read or written.
func (h Hook) Run(ctx context.Context, phase Phase) error {
	do := h.prepare
	if phase == After {
		do = h.finish
	}
	outrun := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, outrun, func() error { return do(ctx) })
}

// prepare ends with a good certificate in the Secret, which all configurations that exist trust.
func (h Hook) prepare(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: SecretName}, Type: corev1.SecretTypeTLS}
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Secret %s: %w", SecretName, err)
	}
	data := secret.Data
	reason := check(data, names(h.Namespace), h.Now())
	if reason != nil {
		var err error
		if data, err = issue(names(h.Namespace), h.Now()); err != nil {
			return err
		}
	}
	changed, err := h.announce(ctx, data[authorityKey])
	if err != nil || reason == nil {
		return err
	}
	if changed {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(h.Heard):
		}
	}
	secret.Data = data
	write := func() error { return h.Client.Update(ctx, secret) }
	if secret.ResourceVersion == "" {
		write = func() error { return h.Client.Create(ctx, secret) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("write Secret %s: %w", SecretName, err)
	}
	fmt.Fprintf(h.Out, "Made a certificate that is valid for %d years. The one before: %v.\n", years, reason)
	return nil
}

// announce has the configurations trust the authority as well as those that they trust already.
// Managers of earlier charts write the authority of their own Secret there, so it goes there, too.
func (h Hook) announce(ctx context.Context, authority []byte) (changed bool, err error) {
	secret := &corev1.Secret{}
	err = h.Client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: EarlierSecretName}, secret)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Secret %s: %w", EarlierSecretName, err)
	}
	if known := secret.Data[authorityKey]; len(secret.Data["ca.key"]) > 0 && !bytes.Contains(known, authority) {
		secret.Data[authorityKey] = join(known, authority)
		if err := h.Client.Update(ctx, secret); err != nil {
			return false, fmt.Errorf("write Secret %s: %w", EarlierSecretName, err)
		}
	}
	return h.trust(ctx, func(bundle []byte) []byte {
		if bytes.Contains(bundle, authority) {
			return bundle
		}
		return join(bundle, authority)
	})
}

// finish ends with configurations that trust the certificate in the Secret and nothing else.
func (h Hook) finish(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: SecretName}, secret); err != nil {
		return fmt.Errorf("get Secret %s: %w", SecretName, err)
	}
	if err := check(secret.Data, names(h.Namespace), h.Now()); err != nil {
		return fmt.Errorf("the certificate in Secret %s is not good, upgrade again: %w", SecretName, err)
	}
	changed, err := h.trust(ctx, func([]byte) []byte { return secret.Data[authorityKey] })
	if changed {
		fmt.Fprintln(h.Out, "The webhook configurations trust the certificate and nothing else.")
	}
	return err
}

// join returns both PEM files in one.
func join(some, more []byte) []byte {
	if len(some) > 0 && !bytes.HasSuffix(some, []byte("\n")) {
		some = append(slices.Clone(some), '\n')
	}
	return slices.Concat(some, more)
}
