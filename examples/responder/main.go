// Command responder has a say before pods are evicted: those that name it may go when
// their data is saved. See README.md.
package main

import (
	"context"
	"flag"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// name is how pods name us, and savedAnnotation how somebody tells us of one.
const (
	name            = "example.com/save"
	savedAnnotation = "example.com/saved"
)

type responder struct{ client.Client }

func main() {
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: metrics.Options{BindAddress: "0"}})
	must(err)
	r := responder{mgr.GetClient()}
	must(ctrl.NewControllerManagedBy(mgr).For(&lifecyclev1alpha1.Eviction{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.of)).Complete(r))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

// of are the Evictions that a change of a pod may bring forward.
func (r responder) of(ctx context.Context, pod client.Object) (requests []ctrl.Request) {
	list := &lifecyclev1alpha1.EvictionList{}
	if err := r.List(ctx, list, client.InNamespace(pod.GetNamespace()), client.HasLabels{name}); err != nil {
		klog.FromContext(ctx).Error(err, "list evictions")
	}
	for i := range list.Items {
		if target := list.Items[i].Spec.Target.Pod; target != nil && target.UID == pod.GetUID() {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile reports, in our turn, that we are alive, and that we are through when the data of
// the pod is saved. What we have reported before is in the Eviction.
func (r responder) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	eviction, pod := &lifecyclev1alpha1.Eviction{}, &corev1.Pod{}
	if err := r.Get(ctx, request.NamespacedName, eviction); err != nil || !myTurn(eviction) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: eviction.Spec.Target.Pod.Name}, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	saved, alive := pod.Annotations[savedAnnotation] == "true", reported(eviction)
	if !saved && alive != nil && time.Since(alive.Time) < 5*time.Minute {
		return ctrl.Result{RequeueAfter: 5*time.Minute - time.Since(alive.Time)}, nil
	}
	now := metav1.Now()
	report := apply.ResponderStatus().WithName(name).WithHeartbeatTime(now).WithMessage("Waits until the data of " + pod.Name + " is saved.")
	if saved {
		report = report.WithCompletionTime(now).WithMessage("The data of " + pod.Name + " is saved.")
	}
	if saved && alive != nil { // two heartbeats within seconds are refused
		report = report.WithHeartbeatTime(*alive)
	}
	return ctrl.Result{RequeueAfter: 5 * time.Minute}, r.Status().Apply(ctx, apply.Eviction(request.Name, request.Namespace).
		WithUID(eviction.UID).WithStatus(apply.EvictionStatus().WithResponders(report)), client.FieldOwner(name))
}

// myTurn is true from when the turn is ours until we are through.
func myTurn(e *lifecyclev1alpha1.Eviction) bool {
	for _, one := range e.Status.TargetResponders {
		if one.Name == name {
			return one.State == lifecyclev1alpha1.ResponderStateActive && e.Spec.Target.Pod != nil
		}
	}
	return false
}

// reported is when we last said that we are alive; nil if we have not yet.
func reported(e *lifecyclev1alpha1.Eviction) *metav1.Time {
	for _, one := range e.Status.Responders {
		if one.Name == name {
			return one.HeartbeatTime
		}
	}
	return nil
}
