package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// becomes is what happens to a Machine from its creation to its end, one sentence of the
// design each.
var becomes = map[string]struct {
	change func(*testing.T, *bridge.Snapshot)
	want   string
}{
	"a new Machine of a Cluster that has opted in gets the hook": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Deleting, s.Machine.Hooked = false, false }, "put",
	},
	"and keeps it": {func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Deleting = false }, "keep"},
	"none without being asked": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Deleting, s.Machine.Hooked, s.Around.Opt = false, false, ""
		}, "keep",
	},
	"a Machine may ask for itself": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Deleting, s.Machine.Hooked, s.Around.Opt, s.Machine.Opt = false, false, "", "true"
		}, "put",
	},
	"and refuse for itself": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Deleting, s.Machine.Opt = false, "false" }, "take",
	},
	"opting out takes it off": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Deleting, s.Around.Opt = false, "" }, "take",
	},
	"a Cluster that cannot be read says neither": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Deleting, s.Around, s.AroundUnread = false, nil, "timeout"
		}, "keep",
	},
	"a paused one is left alone": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Deleting, s.Machine.Hooked, s.Around.Paused = false, false, true
		}, "keep",
	},
	"a hook comes too late when the deletion has begun": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Hooked = false }, "keep",
	},
	"a hook of our name that somebody else has put on is not ours": {
		func(t *testing.T, s *bridge.Snapshot) {
			s.Machine = read(t, strings.Replace(waiting, "ebbtide: ebbtide.dev", "ebbtide: other-ebbtide", 1))
		},
		"keep; BridgeSkipped",
	},
	"and ours is not put in its place": {
		func(t *testing.T, s *bridge.Snapshot) {
			s.Machine = read(t, strings.Replace(waiting, "ebbtide: ebbtide.dev", "ebbtide: other-ebbtide", 1))
			s.Machine.Deleting = false
		}, "keep",
	},
	"the node is drained when the controller waits for us": {nil, "create cluster-api.infra.worker-1, keep"},
	"not before": {func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Waits = false }, "keep"},
	"other hooks go first": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Others = []bridge.Hook{{Name: "backup", Owner: "db-team"}}
		},
		"keep; BridgeWaiting",
	},
	"what is left is told": {
		func(t *testing.T, s *bridge.Snapshot) { *s = begun(t, *s, 12) },
		"keep; BridgeDraining",
	},
	"a drained node lets the Machine go": {
		func(t *testing.T, s *bridge.Snapshot) { *s = begun(t, *s, 0) },
		"finish; BridgeDone",
	},
	"what was drained before the maintenance was changed is not drained": {
		during(0, func(s *bridge.Snapshot) { s.Maintenance.Generation = 2 }),
		"keep; BridgeDraining",
	},
	"the maintenance goes with the node": {
		during(0, func(s *bridge.Snapshot) { s.Held, s.Node, s.Machine.Hooked = nil, nil, false }), "delete, keep",
	},
	"also when the Machine is gone": {
		during(0, func(s *bridge.Snapshot) { s.Held, s.Node, s.Machine = nil, nil, nil }), "delete, keep",
	},
	"and not before the node, so that nothing lands there again": {
		during(0, func(s *bridge.Snapshot) { s.Machine = nil }), "keep",
	},
	"a Machine that is made anew under the name ends it": {
		during(5, func(s *bridge.Snapshot) { s.Machine.Ref.UID, s.Machine.Deleting = "machine-2", false }), "delete, keep",
	},
	"also when it is being deleted, too: the next one is for it": {
		during(0, func(s *bridge.Snapshot) { s.Machine.Ref.UID = "machine-2" }), "delete, keep",
	},
	"a node that registers again ends it": {
		during(0, func(s *bridge.Snapshot) {
			s.Held = registered(s.Held)
			s.Machine = nil
		}), "delete, keep",
	},
	"and is drained itself if its Machine still waits": {
		during(0, func(s *bridge.Snapshot) {
			s.Node = registered(s.Node)
			s.Held = s.Node
		}), "delete, keep",
	},
	"nodeRef moves to another node while the old one stays": {
		during(0, func(s *bridge.Snapshot) { s.Machine.Node, s.Node = "node-8", nil }), "delete, keep",
	},
	"what ends meanwhile is waited for": {
		during(0, func(s *bridge.Snapshot) {
			s.Machine.Node, s.Maintenance.DeletionTimestamp = "node-8", &metav1.Time{Time: now}
		}), "keep; BridgeWaiting",
	},
	"rules that come in the middle end the maintenance when it is known how they are obeyed": {
		during(5, func(s *bridge.Snapshot) { s.Ruled, s.Remote = true, &bridge.Remote{Left: 4} }),
		"delete, elsewhere, keep; BridgeDraining",
	},
	"also when that does not work": {
		during(5, func(s *bridge.Snapshot) {
			s.Ruled, s.Remote = true, &bridge.Remote{Problem: "Secret infra/prod-kubeconfig does not exist"}
		}),
		"delete, elsewhere, keep; BridgeWaiting",
	},
	"and not before": {
		during(5, func(s *bridge.Snapshot) { s.Ruled = true }), "elsewhere, keep",
	},
	"if nothing is left by them the maintenance goes with the node": {
		during(5, func(s *bridge.Snapshot) { s.Ruled, s.Remote = true, &bridge.Remote{Done: true} }), "finish; BridgeDone",
	},
	"rules that go in the middle leave the rest to a maintenance": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Remote = &bridge.Remote{Left: 4} }, "create cluster-api.infra.worker-1, keep",
	},
	"a node that goes under the drain lets the Machine go": {
		during(5, func(s *bridge.Snapshot) { s.Held, s.Node = nil, nil }),
		"finish; BridgeDone",
	},
	"a hook that somebody removes is removed": {
		during(5, func(s *bridge.Snapshot) { s.Machine.Hooked = false }), "keep",
	},
	"a Cluster that is deleted is not waited for": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Around.Deleting = true }, "take; BridgeSkipped",
	},
	"nor one that is gone": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Around, s.Machine.Opt = nil, "true" }, "take; BridgeSkipped",
	},
	"one that cannot be read is": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Around, s.AroundUnread = nil, "Cluster infra/prod could not be read: timeout"
		},
		"keep; BridgeWaiting",
	},
	"a Machine without node": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Node = "" }, "take; BridgeSkipped",
	},
	"one that is not to be drained": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Excluded = v1alpha1.ExcludeNodeDrainingAnnotation },
		"take; BridgeSkipped",
	},
	"the last of a control plane, for whose hooks nobody waits": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.Waits, s.Machine.LaterStep = false, "WaitingForInfrastructureDeletion"
		},
		"take; BridgeSkipped",
	},
	"opting out in the middle": {
		during(5, func(s *bridge.Snapshot) { s.Around.Opt = "" }),
		"pause, take; BridgeSkipped",
	},
	"time that is left": {
		during(2, func(s *bridge.Snapshot) {
			s.Machine.DrainTimeout, s.Machine.DrainStart = 5*time.Minute, now.Add(-4*time.Minute)
		}),
		"keep, again in 1m0s; BridgeDraining",
	},
	"time that is over": {
		during(2, func(s *bridge.Snapshot) {
			s.Machine.DrainTimeout, s.Machine.DrainStart = 5*time.Minute, now.Add(-5*time.Minute)
		}),
		"finish; BridgeGivenUp",
	},
	"also for a cluster that nobody reaches": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Node, s.Remote, s.Machine.DrainTimeout, s.Machine.DrainStart = nil, &bridge.Remote{Problem: "unreachable"}, time.Minute, now.Add(-time.Hour)
		},
		"finish; BridgeGivenUp",
	},
	"a clock that is skewed ends nothing": {
		during(2, func(s *bridge.Snapshot) {
			s.Machine.DrainTimeout, s.Machine.DrainStart, s.ClockSkewed = time.Minute, now.Add(-time.Hour), true
		}),
		"keep; BridgeDraining",
	},
	"a paused Machine begins nothing": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Paused = true }, "keep; BridgeWaiting",
	},
	"a node of another cluster": {func(_ *testing.T, s *bridge.Snapshot) { s.Node = nil }, "elsewhere, keep"},
	"and what is left there": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Node, s.Remote = nil, &bridge.Remote{Left: 3} },
		"elsewhere, keep; BridgeDraining",
	},
	"and what does not pass by itself": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Node, s.Remote = nil, &bridge.Remote{Left: 3, Failed: true, Report: "Drain not completed yet:\n* forbidden"}
		},
		"elsewhere, keep; BridgeBlocked",
	},
	"until it is drained": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Node, s.Remote = nil, &bridge.Remote{Done: true} },
		"finish; BridgeDone",
	},
	"one that nobody reaches keeps the hook": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Node, s.Remote = nil, &bridge.Remote{Problem: "cluster infra/prod is unreachable", Done: true}
		},
		"elsewhere, keep; BridgeWaiting",
	},
	"a maintenance of somebody else by this name": {
		during(0, func(s *bridge.Snapshot) { s.Maintenance.Labels = nil }),
		"keep; BridgeWaiting",
	},
	"or of another node": {
		during(0, func(s *bridge.Snapshot) {
			s.Maintenance.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{"node-8"}
			delete(s.Maintenance.Annotations, v1alpha1.BridgeUIDsAnnotation)
		}), "keep; BridgeWaiting",
	},
	"one that somebody has made, of another stage": {
		during(3, func(s *bridge.Snapshot) { s.Maintenance.Spec.Stage = v1alpha1.StageCordon }),
		"keep; BridgeWaiting",
	},
	"one that somebody has ended": {
		during(0, func(s *bridge.Snapshot) { s.Maintenance.Spec.Stage = v1alpha1.StageComplete }),
		"keep; BridgeWaiting",
	},
}

// registered is a node that was deleted and has registered again.
func registered(node *corev1.Node) *corev1.Node {
	again := node.DeepCopy()
	again.UID = "node-uid-2"
	return again
}

func TestWhatBecomesOfAMachine(t *testing.T) {
	t.Parallel()
	checkAll(t, becomes)
}

// Whoever may write Machines must not choose which node of this cluster is drained: the node
// itself has to say whose it is, in all respects.
func TestAMachineDrainsNoNodeThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for _, lie := range []func(*bridge.Snapshot){
		func(s *bridge.Snapshot) { s.Node.Spec.ProviderID = "aws:///i-8" },
		func(s *bridge.Snapshot) { s.Machine.ProviderID, s.Node.Spec.ProviderID = "", "" },
		func(s *bridge.Snapshot) { s.Node.Annotations = nil },
		func(s *bridge.Snapshot) { s.Node.Annotations["cluster.x-k8s.io/machine"] = "worker-2" },
		func(s *bridge.Snapshot) { s.Node.Annotations["cluster.x-k8s.io/cluster-name"] = "test" },
		func(s *bridge.Snapshot) { s.Node.Annotations["cluster.x-k8s.io/cluster-namespace"] = "team" },
	} {
		s := world(t)
		lie(&s)
		if d := bridge.Decide(s); d.Create != nil || d.Hook != bridge.Keep {
			t.Errorf("with node %+v: %s", s.Node, told(t, d))
		}
	}
}

// Hooks are written by people, and there may be any number of any length.
func TestHooksOfOthersAreBounded(t *testing.T) {
	t.Parallel()
	s := world(t)
	for i := range 5000 {
		s.Machine.Others = append(s.Machine.Others, bridge.Hook{Name: fmt.Sprintf("hook-%d", i), Owner: strings.Repeat("x\n", 5000)})
	}
	message := bridge.Decide(s).Said.Message
	if len(message) > 1024 || !strings.HasSuffix(message, "and 4995 more") || strings.Contains(message, "\n") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// attackers are Machines of other namespaces whose names are cut from that of a maintenance.
func attackers(victim [2]string) (all [][2]string) {
	for _, name := range []string{
		bridge.MaintenanceName(bridge.ClusterAPI, victim[0], victim[1]), bridge.FormerName(victim[0], victim[1]),
	} {
		for _, prefix := range []string{"machine-", "machine-team-", "cluster-api.", "cluster-api-long.", "cluster-api.team."} {
			if rest, cut := strings.CutPrefix(name, prefix); cut && rest != "" {
				all = append(all, [2]string{"team", rest}, [2]string{"a", rest})
			}
		}
	}
	return all
}

// Attack: a Machine is named so that its maintenance has the name of the maintenance of
// another namespace's Machine, which then waits forever.
func TestTwoMachinesNeverShareAMaintenance(t *testing.T) {
	t.Parallel()
	machines := [][2]string{
		{"a", "b-c"},
		{"a-b", "c"},
		{"a-b-c", "d"},
		{"a", "b-c-d"},
		{"a", "b.c"},
		{"a", "b"},
		{"a", strings.Repeat("x", 253)},
		{"a", strings.Repeat("x", 252) + "y"},
		{"team-a", "worker"},
		{"long", "a.b"},
	}
	for _, victim := range slices.Clone(machines) {
		machines = append(machines, attackers(victim)...)
	}
	seen := map[string]string{}
	for _, m := range machines {
		for _, of := range []bridge.Name{bridge.ClusterAPI, bridge.OpenShift} {
			name, who := bridge.MaintenanceName(of, m[0], m[1]), fmt.Sprint(of, m)
			if other, taken := seen[name]; taken && other != who || len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Errorf("%s and %s are both %q (%d)", who, other, name, len(name))
			}
			seen[name] = who
		}
	}
}

// Attack: before an upgrade a Machine had the maintenance that another one should have had.
func TestAMaintenanceUnderTheFormerNameIsOfTheMachineThatItNames(t *testing.T) {
	t.Parallel()
	s := begun(t, world(t), 0)
	s.Maintenance.Name = bridge.FormerName("infra", "worker-1")
	if got := told(t, bridge.Decide(s)); got != "finish; BridgeDone" {
		t.Errorf("one that an earlier version made: %s", got)
	}
	s.Maintenance.Annotations[v1alpha1.BridgeMachineAnnotation] = "other/worker-1"
	if got := told(t, bridge.Decide(s)); got != "keep; BridgeWaiting" {
		t.Errorf("one of another Machine: %s", got)
	}
}

func TestAMaintenanceWithoutAnnotationIsOfNoMachine(t *testing.T) {
	t.Parallel()
	if _, _, name := bridge.MachineOf(&metav1.ObjectMeta{Labels: map[string]string{v1alpha1.BridgeLabel: "cluster-api"}}); name != "" {
		t.Errorf("a maintenance without annotation is of Machine %q", name)
	}
}
