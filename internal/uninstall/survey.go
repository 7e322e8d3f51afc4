package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/core/trace"
)

// page is the number of objects per request.
const page = 500

// kind is a kind of objects that can bear traces.
type kind struct {
	// name is for people, resource is that of RBAC.
	name, resource string
	list           func() client.ObjectList
}

var (
	rollouts     = kind{"NodeRollout", "noderollouts.ebbtide.dev", func() client.ObjectList { return &v1alpha1.NodeRolloutList{} }}
	maintenances = kind{"NodeMaintenance", "nodemaintenances.ebbtide.dev", func() client.ObjectList { return &v1alpha1.NodeMaintenanceList{} }}
	evacuations  = kind{"Evacuation", "evacuations.ebbtide.dev", func() client.ObjectList { return &v1alpha1.EvacuationList{} }}
	requests     = kind{"EvictionRequest", "evictionrequests.lifecycle.k8s.io", func() client.ObjectList { return &lifecyclev1alpha1.EvictionRequestList{} }}
	drainRecords = kind{"DrainRecord", "drainrecords.ebbtide.dev", func() client.ObjectList { return &v1alpha1.DrainRecordList{} }}
	nodes        = kind{"Node", "nodes", func() client.ObjectList { return &corev1.NodeList{} }}
	pods         = kind{"Pod", "pods", func() client.ObjectList { return &corev1.PodList{} }}
	budgets      = kind{"PodDisruptionBudget", "poddisruptionbudgets.policy", func() client.ObjectList { return &policyv1.PodDisruptionBudgetList{} }}
	machines     = kind{"Machine", "machines.ebbtide.dev", func() client.ObjectList { return &v1alpha1.MachineList{} }}
	clusters     = kind{"Cluster", "clusters.ebbtide.dev", func() client.ObjectList { return &v1alpha1.ClusterList{} }}
	ofClusterAPI = bridgedKind("Machine of Cluster API", bridge.ClusterAPIMachine)
	ofOpenShift  = bridgedKind("Machine of OpenShift", bridge.OpenShiftMachine)
	agents       = kind{"NodeAgent", "nodeagents.ebbtide.dev", func() client.ObjectList { return &v1alpha1.NodeAgentList{} }}
)

// written are the kinds that managers write, in a safe order of removal: first those that managers act on.
var written = []kind{rollouts, maintenances, evacuations, requests, drainRecords, nodes, pods, budgets}

func bridgedKind(name string, of schema.GroupVersionKind) kind {
	return kind{name, "machines." + of.Group, func() client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		return list
	}}
}

// group are the findings of one kind.
type group struct {
	kind     kind
	findings []trace.Finding
	// err is set if not all objects could be read.
	err error
}

// surveyor finds traces.
type surveyor struct {
	client client.Client
	// namespace limits the search; empty is all.
	namespace string
	now       func() time.Time
	why       string

	mu sync.Mutex
	// homeless caches whether the ReplicaSet that a pod names does not exist.
	homeless map[home]bool
}

// home is a ReplicaSet as a pod names it.
type home struct {
	name types.NamespacedName
	uid  types.UID
}

func newSurveyor(c client.Client, now func() time.Time, why string) *surveyor {
	return &surveyor{client: c, now: now, why: why, homeless: map[home]bool{}}
}

// survey finds the traces on all objects of these kinds, in this order.
func (s *surveyor) survey(ctx context.Context, kinds ...kind) []group {
	groups := make([]group, 0, len(kinds))
	for _, k := range kinds {
		g := group{kind: k}
		g.err = s.each(ctx, k, func(object client.Object) {
			if finding, found := s.find(ctx, object); found {
				g.findings = append(g.findings, finding)
			}
		})
		groups = append(groups, g)
	}
	return groups
}

// find returns the traces on an object.
func (s *surveyor) find(ctx context.Context, object client.Object) (trace.Finding, bool) {
	facts := trace.Facts{Now: s.now(), Why: s.why}
	if pod, ok := object.(*corev1.Pod); ok {
		facts.Homeless = s.isHomeless(ctx, pod)
	}
	return trace.Of(object, facts)
}

// isHomeless reports whether a pod was detached from a ReplicaSet that no longer exists.
func (s *surveyor) isHomeless(ctx context.Context, pod *corev1.Pod) bool {
	from, detached := surge.Home(pod)
	if !detached {
		return false
	}
	named := home{types.NamespacedName{Namespace: pod.Namespace, Name: from.Name}, from.UID}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, asked := s.homeless[named]; asked {
		return known
	}
	set := &metav1.PartialObjectMetadata{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	err := s.client.Get(ctx, named.name, set)
	s.homeless[named] = apierrors.IsNotFound(err) || err == nil && set.UID != named.uid
	return s.homeless[named]
}

// each visits all objects of a kind. A kind that is not served has none.
func (s *surveyor) each(ctx context.Context, k kind, visit func(client.Object)) error {
	for next, more := "", true; more; more = next != "" {
		list := k.list() // A list that is decoded into again would share its items.
		err := s.client.List(ctx, list, client.InNamespace(s.namespace), client.Limit(page), client.Continue(next))
		if resumed := resume(err); resumed != "" && resumed != next {
			next = resumed
			continue
		}
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("list %s: %w", k.resource, err)
		}
		next = list.GetContinue()
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok {
				visit(object)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("list %s: %w", k.resource, err)
		}
	}
	return nil
}

// resume returns the token to continue an expired list with the current state.
func resume(err error) (next string) {
	var status apierrors.APIStatus
	if apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// nameOf returns NAMESPACE/NAME.
func nameOf(object trace.Object) string {
	return strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}
