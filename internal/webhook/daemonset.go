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

// daemonSetGate holds back a new pod of a DaemonSet from a node whose maintenance
// has removed it. It never denies: the DaemonSet controller would back off, and
// leave out other nodes meanwhile.
type daemonSetGate struct {
	decoder admission.Decoder
	// live reads from the API server: this or another manager has written to the
	// node a moment ago.
	live client.Reader
}

func newDaemonSetGate(scheme *runtime.Scheme, live client.Reader) daemonSetGate {
	return daemonSetGate{admission.NewDecoder(scheme), live}
}

// Handle lets the pod start if it cannot find out whether it may: a node without
// its DaemonSet is worse, and the pod is evacuated again.
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

// letStart is the answer if it is unknown whether the pod may start.
func letStart(why string) admission.Response {
	return admission.Allowed("").WithWarnings("Whether the maintenance of a node keeps this pod away is unknown, so it may start: " + why)
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// hold looks at the node that the pod is made for. One that does not exist keeps
// nothing away.
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
