package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// fleets is what everybody may do here who has Machines and Clusters.
var fleets = rbacv1.PolicyRule{
	APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"machines", "clusters", "machinedrainrules"},
	Verbs: []string{"get", "create", "update", "patch", "delete"},
}

// part is the right to delete objects that Machines name.
func part(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"delete"}}
}

// wantDenied wants a refusal by one of our webhooks in these words.
func wantDenied(t *testing.T, err error, webhook, words string) {
	t.Helper()
	want := fmt.Sprintf("admission webhook %q denied the request: %s", webhook, words)
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestNobodyHasDeletedWithAMachineWhatTheyMayNotDelete(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	const ends = ", and what a Machine names is deleted with it: ask for the verb \"delete\" on "
	for name, tt := range map[string]struct {
		rights []rbacv1.PolicyRule
		want   string
	}{
		"both":    {[]rbacv1.PolicyRule{part("", "configmaps"), part("boot.example.com", "bareconfigs")}, ""},
		"neither": {nil, "ConfigMap m and BareConfig m in namespace " + namespace + ends + "configmaps and bareconfigs.boot.example.com in this namespace"},
		"only infrastructure": {
			[]rbacv1.PolicyRule{part("", "configmaps")},
			"BareConfig m in namespace " + namespace + ends + "bareconfigs.boot.example.com in this namespace",
		},
		"only bootstrap configs": {
			[]rbacv1.PolicyRule{part("boot.example.com", "bareconfigs")},
			"ConfigMap m in namespace " + namespace + ends + "configmaps in this namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			who, user := c.User(t, append(tt.rights, fleets)...)
			err := user.Create(t.Context(), sample.Machine(namespace, "m"), client.DryRunAll)
			if tt.want == "" {
				must(t, err)
				return
			}
			wantDenied(t, err, "machines.ebbtide.dev", fmt.Sprintf("user %q may not delete ", who)+tt.want)
		})
	}
}

// The version may be changed later, so that one that is not served is no way round.
func TestAMachineNamesPartsOfItsNamespace(t *testing.T) {
	c := newAPI(t)
	m := sample.Machine(c.Namespace(t), "m")
	for _, version := range []string{"v1", "v9"} {
		m.Spec.InfrastructureRef = v1alpha1.ObjectReference{APIVersion: version, Kind: "Node", Name: "m"}
		err := c.Client.Create(t.Context(), m.DeepCopy(), client.DryRunAll)
		const words = "spec.infrastructureRef.kind: Invalid value: \"Node\": objects of this kind are in no namespace; name an object in the namespace of the Machine"
		if !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), words) {
			t.Errorf("version %s: error %v, want %s", version, err, words)
		}
	}
}

func TestACreatorOfAMachineIsWarned(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	user, warnings := listening(t, c)
	m := sample.Machine(namespace, "m")
	m.Annotations = map[string]string{v1alpha1.PreDrainHookAnnotationPrefix: "me", v1alpha1.ControlPlaneHookAnnotation: ""}
	must(t, user.Create(t.Context(), m, client.DryRunAll))
	want := []string{
		"spec.clusterName: there is no Cluster east in namespace " + namespace + "; the Machine waits for it",
		"spec.bootstrap.configRef: the API server knows no kind BareConfig of boot.example.com/v1; the Machine waits for it",
		"annotation pre-drain.delete.hook.machine.cluster.x-k8s.io is a pre-drain hook without a name: give it one, as in pre-drain.delete.hook.machine.cluster.x-k8s.io/migrate-important-app",
		"annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup is a pre-terminate hook without an owner: say in its value who removes it",
	}
	if diff := cmp.Diff(want, warnings.take()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	must(t, c.Client.Create(t.Context(), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "east"}}))
	good := sample.Machine(namespace, "m")
	good.Spec.Bootstrap = v1alpha1.MachineBootstrap{}
	must(t, user.Create(t.Context(), good))
	if got := warnings.take(); len(got) > 0 {
		t.Errorf("warned of %q, want nothing", got)
	}
	// Also when a hook is added later.
	late := good.DeepCopy()
	late.Annotations = map[string]string{v1alpha1.ControlPlaneHookAnnotation: ""}
	must(t, user.Update(t.Context(), late))
	if diff := cmp.Diff(want[3:], warnings.take()); diff != "" {
		t.Errorf("warnings of an update (-want +got):\n%s", diff)
	}
	must(t, c.Client.Delete(t.Context(), late))
}

// Once the deletion has begun hooks can only be removed (machine-deletion-hooks).
func TestHooksAreFrozenByTheDeletionOfAMachine(t *testing.T) {
	c := newAPI(t)
	m := sample.Machine(c.Namespace(t), "m")
	m.Finalizers = []string{"example.com/holds"}
	m.Annotations = map[string]string{v1alpha1.PreDrainHookAnnotationPrefix + "/apps": "mover"}
	m.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "Backup", Owner: "keeper"}}
	must(t, c.Client.Create(t.Context(), m))
	merge := func(document string) error {
		return c.Client.Patch(context.WithoutCancel(t.Context()), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(document)))
	}
	must(t, merge(`{"spec":{"lifecycleHooks":{"preDrain":[{"name":"MoveApps","owner":"mover"}]}}}`))
	must(t, c.Client.Delete(t.Context(), m))
	t.Cleanup(func() { must(t, merge(`{"metadata":{"finalizers":null}}`)) })

	const frozen = " hooks are immutable when machine is marked for deletion: the following hooks are new or changed: "
	for name, tt := range map[string]struct{ change, field, words string }{
		"a hook added": {
			`{"spec":{"lifecycleHooks":{"preDrain":[{"name":"MoveApps","owner":"mover"},{"name":"WaitForMe","owner":"somebody"}]}}}`,
			"spec.lifecycleHooks.preDrain", "pre-drain" + frozen + "WaitForMe",
		},
		"a hook changed": {
			`{"spec":{"lifecycleHooks":{"preTerminate":[{"name":"Backup","owner":"somebody"}]}}}`,
			"spec.lifecycleHooks.preTerminate", "pre-terminate" + frozen + "Backup",
		},
		"a hook before the creation": {
			`{"spec":{"lifecycleHooks":{"preCreate":[{"name":"Address","owner":"ipam"}]}}}`,
			"spec.lifecycleHooks.preCreate", "pre-create" + frozen + "Address",
		},
		"an annotation added": {
			`{"metadata":{"annotations":{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/etcd":"keeper"}}}`,
			"metadata.annotations", "pre-terminate" + frozen + "pre-terminate.delete.hook.machine.cluster.x-k8s.io/etcd",
		},
		"an annotation changed": {
			`{"metadata":{"annotations":{"pre-drain.delete.hook.machine.cluster.x-k8s.io/apps":"somebody"}}}`,
			"metadata.annotations", "pre-drain" + frozen + "pre-drain.delete.hook.machine.cluster.x-k8s.io/apps",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := merge(tt.change)
			var status apierrors.APIStatus
			want := []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Field: tt.field, Message: "Forbidden: " + tt.words}}
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("error %v, want it refused", err)
			}
			if diff := cmp.Diff(want, status.Status().Details.Causes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, change := range map[string]string{
		"another annotation":     `{"metadata":{"annotations":{"machine.cluster.x-k8s.io/exclude-node-draining":""}}}`,
		"the hooks removed":      `{"spec":{"lifecycleHooks":null}}`,
		"the annotation removed": `{"metadata":{"annotations":{"pre-drain.delete.hook.machine.cluster.x-k8s.io/apps":null}}}`,
	} {
		if err := merge(change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
