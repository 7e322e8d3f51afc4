package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhooks is the name of the manager's webhook configurations.
const webhooks = "ebbtide"

// Door is where requests to evict come in. Its pods wait for a node that does not
// exist: for these the API server does not look at budgets, which takes up to 100
// ms and would hide what is measured. Nothing is evicted.
type Door struct {
	lab *Lab
	// free has no evacuators, and movable has one.
	free, movable *corev1.Pod
	// webhook is what is asked about evictions, while nobody is.
	webhook *admissionv1.ValidatingWebhook
}

// OpenDoor creates the pods of a door in the load's namespace.
func (l *Lab) OpenDoor(ctx context.Context, load *Load) (*Door, error) {
	d := &Door{lab: l, free: load.waiting("free"), movable: load.waiting("movable")}
	d.movable.Annotations = surges()
	for _, pod := range []*corev1.Pod{d.free, d.movable} {
		if err := l.Client.Create(ctx, pod); err != nil {
			return nil, fmt.Errorf("create pod: %w", err)
		}
	}
	return d, nil
}

// waiting is a pod that no node takes.
func (load *Load) waiting(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: load.Namespace, Name: name}, Spec: podSpec()}
	pod.Spec.NodeSelector = map[string]string{runLabel: "nowhere"}
	return pod
}

// Knock asks to evict a pod that nobody wants to keep.
func (d *Door) Knock(ctx context.Context) error {
	if err := d.evict(ctx, d.free); err != nil {
		return fmt.Errorf("evict %s: %w", d.free.Name, err)
	}
	return nil
}

func (d *Door) evict(ctx context.Context, pod *corev1.Pod) error {
	return d.lab.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}, client.DryRunAll)
}

// Ask has the API server ask the manager about evictions, or not, and returns
// when it does so.
func (d *Door) Ask(ctx context.Context, asks bool) error {
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return d.configure(ctx, asks) }); err != nil {
		return fmt.Errorf("configure webhook: %w", err)
	}
	return d.lab.until(ctx, "the API server to ask, or not", func(ctx context.Context) (bool, error) {
		err := d.evict(ctx, d.movable)
		refused := apierrors.IsTooManyRequests(err)
		if err != nil && !refused {
			return false, err
		}
		return refused == asks, nil
	})
}

func (d *Door) configure(ctx context.Context, asks bool) error {
	all := &admissionv1.ValidatingWebhookConfiguration{}
	if err := d.lab.Client.Get(ctx, client.ObjectKey{Name: webhooks}, all); err != nil {
		return err
	}
	at := slices.IndexFunc(all.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool {
			return slices.Contains(r.Resources, "pods/eviction")
		})
	})
	switch {
	case asks == (at >= 0):
		return nil
	case asks && d.webhook == nil:
		return errors.New("the chart has no webhook on pods/eviction")
	case asks:
		all.Webhooks = append(all.Webhooks, *d.webhook)
	default:
		d.webhook = all.Webhooks[at].DeepCopy()
		all.Webhooks = slices.Delete(all.Webhooks, at, at+1)
	}
	return d.lab.Client.Update(ctx, all)
}

// removeWebhooks has the API server forget a manager that is gone.
func (l *Lab) removeWebhooks(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: webhooks}
	err := errors.Join(
		client.IgnoreNotFound(l.Client.Delete(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta})),
		client.IgnoreNotFound(l.Client.Delete(ctx, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta})),
	)
	if err != nil {
		return fmt.Errorf("remove webhooks: %w", err)
	}
	return nil
}
