package capi

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// awaitShown waits until the condition of a Machine has a reason, and says all of this.
func (w *world) awaitShown(machine *unstructured.Unstructured, reason string, words ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("condition with reason %s that says %q", reason, words), func() (string, bool) {
		conditions, _, _ := unstructured.NestedSlice(w.now(machine).Object, "status", "conditions")
		for _, one := range conditions {
			c := one.(map[string]any)
			if c["type"] != v1alpha1.ConditionBridgeDrained {
				continue
			}
			message := fmt.Sprint(c["message"])
			for _, word := range words {
				if !strings.Contains(message, word) {
					return fmt.Sprint(c), false
				}
			}
			return fmt.Sprint(c), c["reason"] == reason && (c["status"] == "True") == (reason == v1alpha1.EventBridgeDone)
		}
		return fmt.Sprint(conditions), false
	})
}

// The user of a kubeconfig may neither cordon nor evict: the Machine says so. Then its cluster has
// another kubeconfig, which is used at once.
func TestLongTheUserOfAKubeconfigLacksARight(t *testing.T) {
	w, _ := bareWorld(t)
	user, _ := w.c.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	config, err := clientcmd.Load(w.kubeconfigOf())
	w.must(err)
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = user, []string{"system:authenticated"}
	}
	w.kubeconfig, err = clientcmd.Write(*config)
	w.must(err)
	w.reachable()
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker", w.ns, "nobody")
	w.runningPod("web", node.Name, nil)
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)

	lacks := fmt.Sprintf(`User "%s" cannot patch resource "nodes"`, user)
	w.awaitEvent(machine, v1alpha1.EventBridgeBlocked, lacks)
	w.awaitShown(machine, v1alpha1.EventBridgeBlocked, "1 pod left", lacks)

	w.changesItsOwnConditionOnly(machine)

	// By a person, so that nothing but evictions are refused.
	w.must(w.c.Client.Patch(w.ctx, node, mergePatch(`{"spec":{"unschedulable":true}}`)))
	w.awaitShown(machine, v1alpha1.EventBridgeBlocked, "1 pod left", `cannot create resource "pods/eviction"`, w.ns+"/web")

	w.kubeconfig = nil
	secret := &corev1.Secret{}
	w.must(w.c.Client.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "prod-kubeconfig"}, secret))
	secret.Data["value"] = w.kubeconfigOf()
	w.must(w.c.Client.Update(w.ctx, secret))
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	w.awaitShown(machine, v1alpha1.EventBridgeDone)
	w.letGoOf(machine)
	w.delete(node)
}

// Attack: who has the manager's token says of a Machine that it is healthy, or broken.
func (w *world) changesItsOwnConditionOnly(machine *unstructured.Unstructured) {
	w.t.Helper()
	config := rest.CopyConfig(w.c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: cluster.Account.User(), Groups: []string{"system:authenticated"}}
	manager, err := client.New(config, client.Options{Scheme: w.c.Client.Scheme()})
	w.must(err)
	for kind, refused := range map[string]bool{v1alpha1.ConditionBridgeDrained: false, "Ready": true} {
		forged := kindOf(machineKind)
		forged.SetNamespace(machine.GetNamespace())
		forged.SetName(machine.GetName())
		forged.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": kind, "status": "False", "reason": "Forged", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}
		err := manager.Status().Apply(w.ctx, client.ApplyConfigurationFromUnstructured(forged), client.FieldOwner("forger"), client.ForceOwnership, client.DryRunAll)
		if refused != apierrors.IsForbidden(err) || !refused && err != nil {
			w.t.Errorf("condition %s: %v, want it refused: %t", kind, err, refused)
		}
	}
}
