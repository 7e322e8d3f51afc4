package webhook

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

func TestDeletionOfAMachineNeedsTheRightsForItsNode(t *testing.T) {
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
