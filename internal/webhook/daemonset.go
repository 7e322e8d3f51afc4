package webhook

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/kube"
)

// daemonSetPods is the path of daemonSetGate.
const daemonSetPods = "/mutate/daemonset-pods"

// daemonSetGate gates a new pod of a DaemonSet on a node whose maintenance has removed it. It never
// denies, as the DaemonSet controller would back off for all nodes.
type daemonSetGate struct {
	decoder admission.Decoder
	// live reads from the API server, as a manager may have just written to the node.
	live client.Reader
}

func newDaemonSetGate(scheme *runtime.Scheme, live client.Reader) daemonSetGate {
	return daemonSetGate{admission.NewDecoder(scheme), live}
}

// Handle admits the pod if the state of the node is unknown: a node without its DaemonSet is worse,
// and the pod is evacuated again.
func (g daemonSetGate) Handle(ctx context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := g.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the pod: %w", err))
	}
	hold, err := g.hold(ctx, pod)
	switch {
	case err != nil:
		return letStart(err.Error())
	case !hold:
		return admission.Allowed("")
	}
	gates := append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate})
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/schedulingGates", gates))
}

// letStart admits a pod with a warning.
func letStart(why string) admission.Response {
	return admission.Allowed("").WithWarnings("cannot determine whether a maintenance keeps this pod away, so it may start: " + why)
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// hold reports whether the node of the pod keeps it away.
func (g daemonSetGate) hold(ctx context.Context, pod *corev1.Pod) (bool, error) {
	name := kube.PinnedNode(pod)
	if name == "" || daemonset.Held(pod) {
		return false, nil
	}
	node := &corev1.Node{}
	err := g.live.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", name, err)
	}
	return daemonset.Hold(pod, node)
}
