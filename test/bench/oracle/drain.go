package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	workers = 16
	// safetyRetry tries a refused pod although its budget was not seen to move.
	safetyRetry = 5 * time.Second
)

// app is what a budget protects: by the benchmark's convention, the pods of its
// namespace whose label "app" is the budget's name.
type app struct{ namespace, name string }

func appOf(pod *corev1.Pod) app { return app{pod.Namespace, pod.Labels["app"]} }

// room is what an app's budget allowed when it last moved.
type room struct {
	app  app
	pods int
}

// outcome is the answer to one eviction.
type outcome struct {
	pod     corev1.Pod
	refused bool
	err     error
}

// drain is one drain under way. Only the goroutine of run touches its fields.
type drain struct {
	client  kubernetes.Interface
	budgets <-chan room
	ready   []corev1.Pod
	refused map[app][]corev1.Pod
	// moved marks the apps whose budget moved while an eviction was under
	// way: a refusal that comes in now may be older than the move.
	moved map[app]bool
}

// watchBudgets sends what a budget allows whenever one changes.
func watchBudgets(ctx context.Context, client kubernetes.Interface) (<-chan room, error) {
	moves := make(chan room, 1024)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Policy().V1().PodDisruptionBudgets().Informer()
	send := func(object any) {
		budget := object.(*policyv1.PodDisruptionBudget)
		if allowed := budget.Status.DisruptionsAllowed; allowed > 0 {
			moves <- room{app: app{budget.Namespace, budget.Name}, pods: int(allowed)}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    send,
		UpdateFunc: func(_, object any) { send(object) },
	}); err != nil {
		return nil, fmt.Errorf("watch budgets: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return moves, nil
}

func newDrain(client kubernetes.Interface, budgets <-chan room) *drain {
	return &drain{client: client, budgets: budgets, refused: map[app][]corev1.Pod{}, moved: map[app]bool{}}
}

// run evicts pods and returns when the API server has accepted every eviction.
func (d *drain) run(ctx context.Context, pods []corev1.Pod) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work, outcomes := make(chan corev1.Pod), make(chan outcome)
	for range workers {
		go d.work(ctx, work, outcomes)
	}
	safety := time.NewTicker(safetyRetry)
	defer safety.Stop()
	d.ready = pods
	for left := len(pods); left > 0; {
		feed, next := d.next(work)
		select {
		case feed <- next:
			d.ready = d.ready[1:]
		case answer := <-outcomes:
			if answer.err != nil {
				return fmt.Errorf("evict pod %s/%s: %w", answer.pod.Namespace, answer.pod.Name, answer.err)
			}
			left -= d.settle(answer)
		case move := <-d.budgets:
			d.release(move)
		case <-safety.C:
			d.retry()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// next is the channel to send the next pod on; nil, which blocks, when there is none.
func (d *drain) next(work chan<- corev1.Pod) (chan<- corev1.Pod, corev1.Pod) {
	if len(d.ready) == 0 {
		return nil, corev1.Pod{}
	}
	return work, d.ready[0]
}

// settle returns how many pods are done with: one that was refused is not.
func (d *drain) settle(answer outcome) int {
	app := appOf(&answer.pod)
	switch {
	case !answer.refused:
		return 1
	case d.moved[app]:
		delete(d.moved, app)
		d.ready = append(d.ready, answer.pod)
	default:
		d.refused[app] = append(d.refused[app], answer.pod)
	}
	return 0
}

func (d *drain) retry() {
	for app := range d.refused {
		d.release(room{app: app, pods: 1})
	}
}

func (d *drain) release(move room) {
	parked := d.refused[move.app]
	n := min(move.pods, len(parked))
	d.ready = append(d.ready, parked[:n]...)
	d.refused[move.app] = parked[n:]
	d.moved[move.app] = n < move.pods
}

func (d *drain) work(ctx context.Context, work <-chan corev1.Pod, outcomes chan<- outcome) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-work:
			select {
			case outcomes <- d.evict(ctx, pod):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (d *drain) evict(ctx context.Context, pod corev1.Pod) outcome {
	err := d.client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return outcome{pod: pod}
	case apierrors.IsTooManyRequests(err), apierrors.IsConflict(err):
		return outcome{pod: pod, refused: true}
	default:
		return outcome{pod: pod, err: err}
	}
}
