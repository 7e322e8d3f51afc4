package machine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/fault"
)

var (
	rackResource = schema.GroupResource{Group: "infrastructure.example.com", Resource: "racks"}
	forbidden    = apierrors.NewForbidden(rackResource, "one", errors.New("not allowed"))
	// unserved is the answer of an API server that does not serve the version of a kind.
	unserved = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", rackResource, "one", "404 page not found", 0, true)
)

var doubts = map[string]struct {
	request string
	answer  error
	// condition is where it is told, with these words; remains is what is still there.
	condition string
	words     string
	remains   string
}{
	"infrastructure, server error": {
		request: "get Rack one", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "Rack fleet/one could not be read: Internal error occurred: boom", remains: "Boots",
	},
	"infrastructure, no permission": {
		request: "get Rack one", answer: forbidden,
		condition: v1alpha1.ConditionDeleting,
		words:     "has to ship a ClusterRole with the label ebbtide.dev/aggregate-to-manager=true that allows get, list, watch, patch and delete",
		remains:   "Boots",
	},
	"infrastructure, kind not installed": {
		request: "get Rack one", answer: &meta.NoKindMatchError{GroupKind: rackKind.GroupKind()},
		condition: v1alpha1.ConditionDeleting, words: "kind Rack of infrastructure.example.com/v1 is not served here", remains: "Boots",
	},
	"infrastructure, version not served": {
		request: "get Rack one", answer: unserved,
		condition: v1alpha1.ConditionDeleting, words: "the server could not find the requested resource", remains: "Boots",
	},
	"bootstrap config": {
		request: "get Boots one", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "Boots fleet/one could not be read", remains: "Node",
	},
	"node": {
		request: "get Node node", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "Nodes could not be read: get node node: Internal error occurred: boom", remains: "Pod",
	},
	"pods": {
		request: "list Pod", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "list the pods of node node", remains: "Pod",
	},
	"rules": {
		request: "list MachineDrainRule", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "list the MachineDrainRules of namespace fleet", remains: "Pod",
	},
	"attachments": {
		request: "list VolumeAttachment", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionVolumeDetachSucceeded, words: "list the VolumeAttachments of node node", remains: "Rack",
	},
	"cluster": {
		request: "get Cluster shop", answer: apierrors.NewInternalError(errors.New("boom")),
		condition: v1alpha1.ConditionDeleting, words: "could not be read", remains: "Pod",
	},
}

// Nothing is deleted because something could not be read: the deletion stands
// where it is, says why, and goes on as soon as it can be read again (design 40,
// "An unknown is never a yes").
func TestFailedReadStopsOnlyTheDeletion(t *testing.T) {
	t.Parallel()
	for name, test := range doubts {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet(), func(w *world) {
				w.running()
				w.refuse(test.request, test.answer)
				w.must(w.api.Delete(t.Context(), w.machine()))
				w.settle()
				if told := w.condition(test.condition); !strings.Contains(told, test.words) {
					t.Errorf("condition %s is %s, want the words %q", test.condition, told, test.words)
				}
				if left := w.left(); !slices.Contains(left, test.remains) {
					t.Errorf("of all there is %v left, want %s among them", left, test.remains)
				}
				w.api.Refuse = nil
				w.steps("the Machine to go", func() bool { return w.machine() == nil })
			})
		})
	}
}

// A namespace or a DaemonSet that cannot be read holds up its own pods, and no
// others that rules ask the same about.
func TestUnreadableRuleHoldsUpItsOwnPods(t *testing.T) {
	t.Parallel()
	science := &v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "science"},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip},
			Pods: []v1alpha1.MachineDrainRulePodSelector{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "science"}},
			}},
		},
	}
	in := func(namespace, name, daemonSet string) *corev1.Pod {
		pod := aPod(name)
		pod.Namespace = namespace
		if daemonSet != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemonSet, UID: "none", Controller: new(true)}}
		}
		return pod
	}
	for name, test := range map[string]struct {
		request    string
		held, gone *corev1.Pod
	}{
		"a namespace": {"get Namespace attic", in("attic", "held", ""), in("cellar", "gone", "")},
		"a DaemonSet": {"get DaemonSet agent", in("cellar", "held", "agent"), in("cellar", "gone", "proxy")},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(fleet(), science.DeepCopy(), test.held, test.gone)
			for _, namespace := range []string{"attic", "cellar"} {
				objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			}
			inWorld(t, objects, func(w *world) {
				w.running()
				w.refuse(test.request, apierrors.NewInternalError(errors.New("boom")))
				w.must(w.api.Delete(t.Context(), w.machine()))
				w.settle()
				if told := w.condition(v1alpha1.ConditionDrainingSucceeded); !strings.Contains(told, test.held.Namespace+"/held") {
					t.Errorf("DrainingSucceeded is %s, want it about the pod that nobody knows how to drain", told)
				}
				if !slices.Contains(w.evicted, "gone") || slices.Contains(w.evicted, "held") {
					t.Errorf("evicted are %v, want all but the pod that nobody knows how to drain", w.evicted)
				}
				w.api.Refuse = nil
				w.steps("the Machine to go", func() bool { return w.machine() == nil })
			})
		})
	}
}

func (w *world) left() (kinds []string) {
	w.t.Helper()
	for kind, object := range map[string]client.Object{
		"Node":  &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		"Pod":   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}},
		"Rack":  external(racks, "Rack"),
		"Boots": external(boots, "Boots"),
	} {
		if w.find(object, object.GetNamespace(), object.GetName()) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// A cache that does not show an object is no proof that there is none.
func TestOnlyALiveReadProvesAbsence(t *testing.T) {
	t.Parallel()
	behind, server := fault.NewServer(t), fault.NewServer(t, fleet()...)
	tests := map[string]struct {
		key    types.NamespacedName
		object client.Object
		want   bool
	}{
		"a node that the cache does not show":    {types.NamespacedName{Name: "node"}, &corev1.Node{}, true},
		"a cluster that the cache does not show": {types.NamespacedName{Namespace: "fleet", Name: "shop"}, &v1alpha1.Cluster{}, true},
		"a node that there is not":               {types.NamespacedName{Name: "other"}, &corev1.Node{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := kube.Find(t.Context(), behind, server, test.key, test.object)
			if err != nil || found != test.want {
				t.Errorf("found is %t, error %v, want %t", found, err, test.want)
			}
		})
	}
}

// A pod that has come and that the cache does not show yet is evicted all the same
// before the Node is found drained.
func TestANodeIsFoundDrainedByTheAPIServer(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.connect = &staleLists{Client: w.api.Manager, hides: "late"}
		w.must(w.api.Create(t.Context(), aPod("late")))
		w.deleted()
		if !slices.Contains(w.evicted, "late") {
			t.Errorf("evicted are %v, want the pod among them that the cache does not show", w.evicted)
		}
	})
}

type staleLists struct {
	client.Client
	hides string
}

func (s *staleLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.Client.List(ctx, list, options...)
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Name == s.hides })
	}
	return err
}
