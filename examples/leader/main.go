// Command leader is an evacuator for applications that have a leader: before
// the pod that leads is evicted, another one has taken over. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// class is ours: evacuation.coordination.k8s.io/priority_handover.example.com.
	class = "handover.example.com"
	// leaseLabel on a pod names the Lease that is held by the leader.
	leaseLabel = "handover.example.com/lease"
	// successorAnnotation on the Lease asks the pod that it names to take the
	// Lease, and to remove the annotation in the same write.
	successorAnnotation = "handover.example.com/successor"
)

type evacuator struct{ client.Client }

func main() {
	namespace := flag.String("namespace", "default", "where the application runs")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	must(v1alpha1.AddToScheme(scheme.Scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}},
		Metrics: metrics.Options{BindAddress: "0"},
	})
	must(err)
	e := evacuator{mgr.GetClient()}
	wake := handler.EnqueueRequestsFromMapFunc(e.all)
	must(ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Evacuation{}).
		Watches(&corev1.Pod{}, wake).Watches(&coordinationv1.Lease{}, wake).Complete(e))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

// all are the evacuations that a change of a pod or a Lease may bring forward.
func (e evacuator) all(ctx context.Context, _ client.Object) (requests []ctrl.Request) {
	list := &v1alpha1.EvacuationList{}
	if err := e.List(ctx, list); err != nil {
		klog.FromContext(ctx).Error(err, "list evacuations")
	}
	for _, evacuation := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&evacuation)})
	}
	return requests
}

// Reconcile brings one evacuation a step forward. What we did before, perhaps
// before we were started again, is in the Evacuation and in the Lease.
func (e evacuator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	evacuation, lease, pods := &v1alpha1.Evacuation{}, &coordinationv1.Lease{}, &corev1.PodList{}
	if err := e.Get(ctx, request.NamespacedName, evacuation); err != nil || !myTurn(evacuation) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	key := client.ObjectKey{Namespace: request.Namespace, Name: evacuation.Labels[leaseLabel]} // its labels are the pod's
	if err := errors.Join(e.Get(ctx, key, lease), e.List(ctx, pods, client.MatchingLabels{leaseLabel: key.Name})); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, e.step(ctx, evacuation, lease, others(pods, evacuation))
}

// myTurn is true until the pod may go. Once we have forbidden to cancel we go
// on, even if nobody asks for the evacuation any more.
func myTurn(e *v1alpha1.Evacuation) bool {
	asked := slices.ContainsFunc(e.Finalizers, func(f string) bool { return strings.HasPrefix(f, v1alpha1.InstigatorFinalizerPrefix) })
	return e.Status.ActiveEvacuatorClass == class && !e.Status.ActiveEvacuatorCompleted &&
		(asked || e.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid)
}

// others are the ready pods besides the one that is to go.
func others(pods *corev1.PodList, evacuation *v1alpha1.Evacuation) (names []string) {
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && pod.DeletionTimestamp == nil && pod.UID != evacuation.Spec.PodRef.UID {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// step asks one of the others to lead, unless one does or has been asked.
func (e evacuator) step(ctx context.Context, evacuation *v1alpha1.Evacuation, lease *coordinationv1.Lease, others []string) error {
	leader, asked := ptr.Deref(lease.Spec.HolderIdentity, ""), lease.Annotations[successorAnnotation]
	status, forbidden := &evacuation.Status, evacuation.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid
	switch {
	case slices.Contains(others, leader):
		return e.report(ctx, evacuation, "Pod "+leader+" leads.", func() {
			status.ActiveEvacuatorCompleted, status.ExpectedEvacuationFinishTime = true, nil
			if len(evacuation.Finalizers) == 0 { // nobody asks any more, and the pod may as well stay
				status.EvacuationCancellationPolicy = v1alpha1.CancellationAllow
			}
		})
	case forbidden && (len(others) == 0 || slices.Contains(others, asked)):
		return nil // the pods or the Lease will wake us
	case len(others) == 0:
		return e.report(ctx, evacuation, "No other pod is ready to lead.", func() {})
	}
	// Nobody can take back what the pod was asked for: we forbid to cancel before.
	if err := e.report(ctx, evacuation, "Pod "+others[0]+" is asked to lead.", func() {
		status.EvacuationCancellationPolicy = v1alpha1.CancellationForbid
		status.ExpectedEvacuationFinishTime = &metav1.Time{Time: time.Now().Add(30 * time.Second)}
	}); err != nil {
		return err
	}
	before := lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, successorAnnotation, others[0])
	return e.Patch(ctx, lease, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// report writes what is new, as progress. The write fails if the turn has passed on meanwhile.
func (e evacuator) report(ctx context.Context, evacuation *v1alpha1.Evacuation, message string, change func()) error {
	if evacuation.Status.Message == message {
		return nil
	}
	before := evacuation.DeepCopy()
	evacuation.Status.Message, evacuation.Status.EvacuationProgressTimestamp = message, new(metav1.Now())
	change()
	return e.Status().Patch(ctx, evacuation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
