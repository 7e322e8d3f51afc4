// Package api shows good and bad objects to the real API server, with nothing
// but our CRDs installed, and holds it to what it answers: defaults, and for
// every refusal the field and the words that tell a user what to do.
package api

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func server(t *testing.T) client.Client {
	t.Helper()
	return cluster.Start(t, cluster.Spec{OnlyAPIServer: true}).Client
}

// object decodes one YAML document. It stays unstructured, because Go types
// cannot hold most of what is wrong here.
func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		t.Fatalf("decode test object: %v\n%s", err, document)
	}
	return &unstructured.Unstructured{Object: content}
}

// try asks the API server whether it would take the object, and keeps nothing.
func try(t *testing.T, c client.Client, document string) error {
	t.Helper()
	return c.Create(t.Context(), object(t, document), client.DryRunAll)
}

// create creates the object and removes it when the test ends.
func create(t *testing.T, c client.Client, document string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, document)
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("create %s: %v", o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %s: %v", o.GetName(), err)
		}
	})
	return o
}

// patch merges a YAML document into a live object, or into its subresource.
func patch(t *testing.T, c client.Client, o *unstructured.Unstructured, document string) error {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatalf("decode patch: %v\n%s", err, document)
	}
	merge := client.RawPatch(types.MergePatchType, data)
	if strings.HasPrefix(strings.TrimSpace(document), "status:") {
		return c.Status().Patch(t.Context(), o.DeepCopy(), merge)
	}
	return c.Patch(t.Context(), o.DeepCopy(), merge)
}

// refusal is the fields that the API server names, each with a part of its words.
type refusal map[string]string

// expect fails unless err refuses the wanted fields with the wanted words, and no other field.
func (want refusal) expect(t *testing.T, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		t.Fatalf("want the object refused as invalid, got: %v", err)
	}
	got := map[string]string{}
	for _, cause := range status.Status().Details.Causes {
		if !aside(cause) {
			got[cause.Field] += cause.Message + "\n"
		}
	}
	for field, words := range want {
		if !strings.Contains(got[field], words) {
			t.Errorf("%s is not refused with %q; the whole answer:\n%v", field, words, err)
		}
		delete(got, field)
	}
	for field, words := range got {
		t.Errorf("unexpected refusal of %s: %s", field, words)
	}
}

// aside is true for what the server says about no field: that it stopped before
// the CEL rules and, since some release, that a number has too many bits.
func aside(cause metav1.StatusCause) bool {
	return cause.Field == "<nil>"
}
