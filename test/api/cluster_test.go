package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// workloadCluster is a Cluster with these lines in its spec.
func workloadCluster(spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: east, namespace: default}
spec:
%s`, indent(spec, "  "))
}

func TestClusterIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"nothing in it":                 `{}`,
		"a kubeconfig":                  `kubeconfigSecretRef: {name: east-kubeconfig}`,
		"a key of its own":              `kubeconfigSecretRef: {name: east.example.com, key: admin_1.conf}`,
		"the longest names":             `kubeconfigSecretRef: {name: ` + strings.Repeat("n", 253) + `, key: ` + strings.Repeat("k", 253) + `}`,
		"paused":                        `paused: true`,
		"an external control plane":     `controlPlane: {externallyManaged: true}`,
		"an object for a control plane": `controlPlane: {ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlane, name: east}}`,
		"an object of the core group":   `controlPlane: {ref: {apiVersion: v1, kind: ConfigMap, name: east}}`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, workloadCluster(spec)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// The key is the one that Cluster API uses.
func TestDefaultsOfACluster(t *testing.T) {
	t.Parallel()
	c := server(t)
	create(t, c, strings.Replace(workloadCluster(`kubeconfigSecretRef: {name: east-kubeconfig}`), "name: east", "name: defaults", 1))
	var got v1alpha1.Cluster
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "defaults"}, &got); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.ClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "east-kubeconfig", Key: "value"}}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestClusterIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const secret = "spec.kubeconfigSecretRef"
	tests := map[string]struct {
		spec string
		want refusal
	}{
		"no name of the Secret":    {`kubeconfigSecretRef: {key: value}`, refusal{secret + ".name": "Required value"}},
		"an empty name":            {`kubeconfigSecretRef: {name: ""}`, refusal{secret + ".name": "should be at least 1 chars long"}},
		"a name in capitals":       {`kubeconfigSecretRef: {name: East}`, refusal{secret + ".name": `use the name of a Secret, such as "east-kubeconfig"`}},
		"a Secret elsewhere":       {`kubeconfigSecretRef: {name: other/east}`, refusal{secret + ".name": `use the name of a Secret, such as "east-kubeconfig"`}},
		"a name of 254 characters": {`kubeconfigSecretRef: {name: ` + strings.Repeat("n", 254) + `}`, refusal{secret + ".name": "may not be more than 253"}},
		"an empty key":             {`kubeconfigSecretRef: {name: east, key: ""}`, refusal{secret + ".key": "should be at least 1 chars long"}},
		"a key with a slash":       {`kubeconfigSecretRef: {name: east, key: a/b}`, refusal{secret + ".key": `use the key of a Secret, such as "value"`}},
		"a key that is a folder":   {`kubeconfigSecretRef: {name: east, key: ..}`, refusal{secret + ".key": `use the key of a Secret, such as "value"`}},
		"paused in words":          {`paused: soon`, refusal{"spec.paused": `must be of type boolean: "string"`}},
		"an incomplete control plane": {`controlPlane: {ref: {}}`, refusal{
			"spec.controlPlane.ref.apiVersion": "Required value", "spec.controlPlane.ref.kind": "Required value", "spec.controlPlane.ref.name": "Required value",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, workloadCluster(test.spec)))
		})
	}
}

// Faults of a reference, below its path.
var badReferences = map[string]struct {
	reference string
	want      refusal
}{
	"nothing in it": {`{}`, refusal{".apiVersion": "Required value", ".kind": "Required value", ".name": "Required value"}},
	"empty fields": {
		`{apiVersion: "", kind: "", name: ""}`,
		refusal{".apiVersion": "at least 1 chars long", ".kind": "at least 1 chars long", ".name": "at least 1 chars long"},
	},
	"no version":           {`{apiVersion: infra.example.com/, kind: A, name: a}`, refusal{".apiVersion": `use a group and a version, such as "infrastructure.cluster.x-k8s.io/v1beta2"`}},
	"two slashes":          {`{apiVersion: infra/example/v1, kind: A, name: a}`, refusal{".apiVersion": "use a group and a version"}},
	"a group alone":        {`{apiVersion: infra.example.com, kind: A, name: a}`, refusal{".apiVersion": "use a group and a version"}},
	"a Machine":            {`{apiVersion: ebbtide.dev/v1alpha1, kind: Machine, name: a}`, refusal{".apiVersion": "name an object of a provider; Machines and Clusters are not made of each other"}},
	"a kind with a space":  {`{apiVersion: v1, kind: A B, name: a}`, refusal{".kind": `use a kind, such as "DockerMachine"`}},
	"a kind of 64 letters": {`{apiVersion: v1, kind: ` + strings.Repeat("K", 64) + `, name: a}`, refusal{".kind": "may not be more than 63"}},
	"a name with a slash":  {`{apiVersion: v1, kind: A, name: other/a}`, refusal{".name": `use the name of an object, such as "east-1"`}},
	"a name in capitals":   {`{apiVersion: v1, kind: A, name: East}`, refusal{".name": "use the name of an object"}},
}

func TestReferencesAreRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	good := `{apiVersion: infra.example.com/v1, kind: BareMachine, name: one}`
	for name, test := range badReferences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at(test.want, "spec.controlPlane.ref").expect(t, try(t, c, workloadCluster("controlPlane: {ref: "+test.reference+"}")))
			at(test.want, "spec.infrastructureRef").expect(t, try(t, c, machine("clusterName: east\ninfrastructureRef: "+test.reference)))
			at(test.want, "spec.bootstrap.configRef").expect(t,
				try(t, c, machine("clusterName: east\ninfrastructureRef: "+good+"\nbootstrap: {configRef: "+test.reference+"}")))
		})
	}
}

// at is a refusal of what is below a path.
func at(below refusal, path string) refusal {
	want := refusal{}
	for field, words := range below {
		want[path+field] = words
	}
	return want
}
