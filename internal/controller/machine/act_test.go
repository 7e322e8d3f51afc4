package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

var refusals = map[string]struct {
	request   string
	deleting  bool
	condition string
	words     string
}{
	"hold the Machine": {
		request: "patch Machine one", condition: v1alpha1.ConditionBootstrapReady, words: "add the finalizer",
	},
	"adopt the bootstrap config": {
		request: "patch Boots one", condition: v1alpha1.ConditionBootstrapReady, words: "adopt Boots one",
	},
	"adopt the infrastructure": {
		request: "patch Rack one", condition: v1alpha1.ConditionInfrastructureReady, words: "adopt Rack one",
	},
	"cordon": {
		request: "patch Node node", deleting: true, condition: v1alpha1.ConditionDeleting, words: "cordon node node",
	},
	"delete the infrastructure": {
		request: "delete Rack one", deleting: true, condition: v1alpha1.ConditionDeleting, words: "delete Rack one",
	},
	"delete the bootstrap config": {
		request: "delete Boots one", deleting: true, condition: v1alpha1.ConditionDeleting, words: "delete Boots one",
	},
	"delete the node": {
		request: "delete Node node", deleting: true, condition: v1alpha1.ConditionDeleting, words: "delete node node",
	},
}

// What the API server refuses is told on the Machine in its words, is tried again
// and is not told any more when it has worked.
func TestRefusedWriteIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet(), func(w *world) {
				if test.deleting {
					w.running()
					w.must(w.api.Delete(t.Context(), w.machine()))
				}
				w.refuse(test.request, forbidden)
				words := fmt.Sprintf("The last attempt failed and will be retried: %s: %v", test.words, forbidden)
				w.steps("the refusal to be told", func() bool { return strings.Contains(w.condition(test.condition), words) })

				w.api.Refuse = nil
				if test.deleting {
					w.steps("the Machine to go", func() bool { return w.machine() == nil })
					return
				}
				w.running()
				if told := w.condition(test.condition); strings.Contains(told, "has failed") {
					t.Errorf("condition %s is still %s", test.condition, told)
				}
			})
		})
	}
}

// Nobody is evicted from a node that could not be cordoned: what comes in its
// place could land there again.
func TestNoPodIsEvictedWithoutACordon(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.refuse("patch Node node", forbidden)
		w.must(w.api.Delete(t.Context(), w.machine()))
		for range 10 {
			w.step()
		}
		if len(w.evicted) > 0 {
			t.Errorf("evicted are %v", w.evicted)
		}
	})
}

// Somebody who implements a hook may write its condition at any moment. It stays.
func TestConditionsOfOthersAreNeverLost(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		theirs := metav1.Condition{Type: "PreDrainBackupSucceeded", Status: metav1.ConditionFalse, Reason: "Running", Message: "half done"}
		written := false
		w.api.Refuse = func(request string) error {
			if request != "patch status of Machine one" || written {
				return nil
			}
			written = true
			m := w.machine()
			meta.SetStatusCondition(&m.Status.Conditions, theirs)
			return w.api.Status().Update(t.Context(), m)
		}
		m := w.machine()
		m.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "Backup", Owner: "the backup"}}
		w.must(w.api.Update(t.Context(), m))
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		if got := w.condition(theirs.Type); got != "False because Running: half done" {
			t.Errorf("condition %s is %q, want it as it was written", theirs.Type, got)
		}
		if got := w.condition(v1alpha1.ConditionDeleting); !strings.Contains(got, "Backup (owner the backup)") {
			t.Errorf("condition Deleting is %q, want it to go on to the hook", got)
		}
	})
}

// A Cluster that is paused while pods leave stops their eviction at once, and one
// that cannot be reached says so; both go on where they were.
func TestStoppedDrainStopsItsEvictions(t *testing.T) {
	t.Parallel()
	t.Run("paused", func(t *testing.T) {
		inWorld(t, fleet(), func(w *world) {
			w.running()
			w.refuseEvictions(true)
			w.must(w.api.Delete(t.Context(), w.machine()))
			w.settle()
			w.pause(true)
			w.settle()
			w.refuseEvictions(false)
			w.settle()
			if len(w.evicted) > 0 {
				t.Errorf("evicted are %v while the cluster is paused", w.evicted)
			}
			w.pause(false)
			w.steps("the Machine to go", func() bool { return w.machine() == nil })
		})
	})
	t.Run("unreachable", func(t *testing.T) {
		inWorld(t, fleet(), func(w *world) {
			w.running()
			w.unreachable = errors.New("cluster fleet/shop is unreachable since yesterday: no route")
			w.must(w.api.Delete(t.Context(), w.machine()))
			w.settle()
			if told := w.condition(v1alpha1.ConditionDeleting); !strings.Contains(told, w.unreachable.Error()) {
				t.Errorf("condition Deleting is %s, want it to say that the cluster is unreachable", told)
			}
			w.unreachable = nil
			w.steps("the Machine to go", func() bool { return w.machine() == nil })
			if slices.Sort(w.evicted); !slices.Equal(w.evicted, []string{"a", "b"}) {
				t.Errorf("evicted are %v, want a and b", w.evicted)
			}
		})
	})
}

// Evictions stop at once, not behind the next write, and also where the connection
// is another one now.
func TestEvictionsStopBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	t.Run("unreachable in the middle", func(t *testing.T) {
		inWorld(t, fleet(), func(w *world) {
			w.running()
			w.refuseEvictions(true)
			w.must(w.api.Delete(t.Context(), w.machine()))
			w.settle()
			w.unreachable = errors.New("cluster fleet/shop is not connected yet: its kubeconfig is another one now")
			w.step()
			w.refuseEvictions(false)
			w.settle()
			if len(w.evicted) > 0 {
				t.Errorf("evicted are %v by a connection that is not the cluster's any more", w.evicted)
			}
			w.unreachable = nil
			w.steps("the Machine to go", func() bool { return w.machine() == nil })
		})
	})
	t.Run("held by a hook that cannot be recorded", func(t *testing.T) {
		inWorld(t, fleet(), func(w *world) {
			w.running()
			w.refuseEvictions(true)
			w.must(w.api.Delete(t.Context(), w.machine()))
			w.settle()
			m := w.machine()
			m.Annotations = map[string]string{v1alpha1.PreDrainHookAnnotationPrefix + "/late": "somebody"}
			w.must(w.api.Update(t.Context(), m))
			w.refuse("patch status of Machine one", forbidden)
			for range 10 {
				w.step()
			}
			if len(w.evicted) > 0 {
				t.Errorf("evicted are %v while a hook holds the Machine", w.evicted)
			}
		})
	})
}

func (w *world) refuseEvictions(refused bool) {
	w.api.Refuse = nil
	if refused {
		w.api.Refuse = func(request string) error {
			if strings.HasPrefix(request, "evict ") {
				return errors.New("no answer")
			}
			return nil
		}
	}
}

func (w *world) pause(paused bool) {
	w.t.Helper()
	c := &v1alpha1.Cluster{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "shop"}, c))
	c.Spec.Paused = paused
	w.must(w.api.Update(w.t.Context(), c))
}

// The cluster of a Machine is in use until the Machine has its Node, and again
// while it is being deleted. A look at the own cluster costs nothing.
func TestAClusterIsInUseWhileItIsNeeded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kubeconfig *v1alpha1.SecretKeyReference
		want       bool
	}{
		"another cluster": {kubeconfig: &v1alpha1.SecretKeyReference{Name: "shop", Key: "value"}, want: false},
		"the own cluster": {want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := fleet()
			objects[0].(*v1alpha1.Cluster).Spec.KubeconfigSecretRef = test.kubeconfig
			inWorld(t, objects, func(w *world) {
				w.step()
				w.step()
				w.wantUse("waits for its Node", true)
				w.running()
				w.settle()
				w.wantUse("runs", test.want)
				if told := w.condition(v1alpha1.ConditionNodeReady); told != "True because Ready: Node node." {
					t.Errorf("condition NodeReady is %s, want the Machine to have its Node", told)
				}
				w.deleted()
				w.settle()
				w.wantUse("is gone", false)
			})
		})
	}
}

func (w *world) wantUse(when string, want bool) {
	w.t.Helper()
	if got := w.users[key]; got != want {
		w.t.Errorf("a Machine that %s uses the cluster: %t, want %t", when, got, want)
	}
}
