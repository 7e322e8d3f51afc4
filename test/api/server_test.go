// Package api shows good and bad objects to the real API server, with nothing
// but our CRDs installed, and holds it to what it answers: defaults, and for
// every refusal the field and the words that tell a user what to do.
package api

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func server(t *testing.T) client.Client {
	t.Helper()
	return cluster.Start(t, cluster.Spec{OnlyAPIServer: true}).Client
}

// as returns the client of a user or an account, and has a handler hear its warnings.
func as(t *testing.T, server *cluster.Cluster, who rest.ImpersonationConfig, heard rest.WarningHandler) client.WithWatch {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate, config.WarningHandler = who, heard
	c, err := client.NewWithWatch(config, client.Options{Scheme: server.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
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
	keep(t, c, o)
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
// No wanted field means that nothing is refused.
func (want refusal) expect(t *testing.T, err error) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
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

// aside reports whether the server says it about no field: that it stopped before the CEL rules
// or, since some release, that a number has too many bits.
func aside(cause metav1.StatusCause) bool {
	return cause.Field == "<nil>"
}

// at returns a refusal of what is below a path.
func at(below refusal, path string) refusal {
	want := refusal{}
	for field, words := range below {
		want[path+field] = words
	}
	return want
}

// kind builds an object of a kind from its name and the lines of its spec.
type kind func(name, spec string) string

// row is the spec of a new object and, if there is one, a change of it, with the fields that the
// API server refuses.
type row struct {
	spec, change string
	refused      refusal
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// slug is a name of an object that no other test has.
func slug(t *testing.T) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
}

// play sends each row to the API server.
func (build kind) play(t *testing.T, rows map[string]row) {
	t.Helper()
	t.Parallel()
	c := server(t)
	for title, r := range rows {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			if r.change == "" {
				r.refused.expect(t, try(t, c, build(slug(t), r.spec)))
				return
			}
			r.refused.expect(t, patch(t, c, create(t, c, build(slug(t), r.spec)), r.change))
		})
	}
}

// accepts makes one change of an object after the other.
func accepts(t *testing.T, c client.Client, o *unstructured.Unstructured, changes ...string) {
	t.Helper()
	for _, change := range changes {
		if err := patch(t, c, o, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
}

// read returns an object as Go clients read it.
func read[T any, P interface {
	*T
	client.Object
}](t *testing.T, c client.Client, o client.Object) *T {
	t.Helper()
	typed := P(new(T))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
