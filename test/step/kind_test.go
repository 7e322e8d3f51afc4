package step

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/controller/machine"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// crd is a kind of infrastructure in two versions. The arguments are its plural
// name, its kind, and which version is served beside v1.
const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.infrastructure.example.com}
spec:
  group: infrastructure.example.com
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1beta1
    served: %[3]t
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// library is what reads objects, on a real API server.
type library struct {
	*cluster.Cluster
	t         *testing.T
	objects   *machine.Objects
	live      client.Reader
	namespace string
	kind      schema.GroupVersionKind
	plural    string

	mu      sync.Mutex
	changes int
}

// newLibrary reads as whom the config says.
func newLibrary(t *testing.T, c *cluster.Cluster, config *rest.Config) *library {
	t.Helper()
	plural := strings.ReplaceAll(c.Pool(), "-", "") + "racks"
	l := &library{
		Cluster: c, t: t, namespace: c.Namespace(t), plural: plural,
		kind: schema.GroupVersionKind{Group: "infrastructure.example.com", Version: "v1", Kind: strings.ToUpper(plural[:1]) + plural[1:]},
	}
	live, err := client.New(config, client.Options{})
	l.must("make a client", err)
	l.live = live
	l.objects, err = machine.OpenObjects(config, cache.Options{}, live, func(schema.GroupKind, types.NamespacedName) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changes++
	})
	l.must("make a cache", err)
	runUntilEnd(t, l.objects.Start)
	return l
}

func (l *library) must(what string, err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

func (l *library) install(both bool) {
	l.t.Helper()
	l.Apply(l.t, "", fmt.Sprintf(crd, l.plural, l.kind.Kind, both))
}

func (l *library) create() {
	l.t.Helper()
	object := l.blank()
	object.SetNamespace(l.namespace)
	object.SetName("one")
	object.Object["spec"] = map[string]any{"providerID": "rack:///one", "size": "large"}
	patience.Eventually(l.t, "an object of the new kind", func(ctx context.Context) (string, bool) {
		err := l.Client.Create(ctx, object.DeepCopy())
		return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
	})
}

func (l *library) blank() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(l.kind)
	return object
}

// read asks for the object in a version.
func (l *library) read(version string) (*unstructured.Unstructured, error) {
	found, err := l.objects.Get(l.t.Context(), types.NamespacedName{Namespace: l.namespace, Name: "one"}, l.kind.GroupKind().WithVersion(version))
	return found.Object, err
}

// eventually waits until what is read is as wanted.
func (l *library) eventually(what string, wanted func(*unstructured.Unstructured, error) bool) {
	l.t.Helper()
	patience.Eventually(l.t, what, func(context.Context) (string, bool) {
		object, err := l.read(l.kind.Version)
		return fmt.Sprintf("%v, error %v", object, err), wanted(object, err)
	})
}

// followed tells whether the object is read from the cache, which keeps only what
// decisions read, and whether its changes are told.
func (l *library) followed(object *unstructured.Unstructured, err error) bool {
	if err != nil || object == nil {
		return false
	}
	_, full, _ := unstructured.NestedString(object.Object, "spec", "size")
	return !full && l.told() > 0
}

// told is how many changes were told.
func (l *library) told() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// A kind may be installed after a Machine has named it.
func TestAKindThatComesLaterIsFollowed(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	l := newLibrary(t, c, c.Config)
	if object, err := l.read("v1"); !meta.IsNoMatchError(err) {
		t.Fatalf("an object of a kind that there is not is %v, error %v, want it to be said", object, err)
	}
	l.install(true)
	l.create()
	l.eventually("the object in the cache", l.followed)

	l.must("delete the object", l.Client.Delete(t.Context(), mustRead(t, l)))
	l.eventually("the object to be gone", func(object *unstructured.Unstructured, err error) bool { return object == nil && err == nil })
}

func mustRead(t *testing.T, l *library) *unstructured.Unstructured {
	t.Helper()
	object, err := l.read("v1")
	if err != nil || object == nil {
		t.Fatalf("read the object: %v, error %v", object, err)
	}
	return object
}

// A permission that is missing is said, and noticed when it is granted.
func TestAPermissionThatComesLaterIsNoticed(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	name, _ := c.User(t)
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	l := newLibrary(t, c, config)
	l.install(true)
	l.create()
	l.eventually("the refusal", func(_ *unstructured.Unstructured, err error) bool {
		return apierrors.IsForbidden(err)
	})

	role := &rbacv1.ClusterRole{}
	l.must("get the user's role", l.Client.Get(t.Context(), types.NamespacedName{Name: name}, role))
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{l.kind.Group}, Resources: []string{l.plural}, Verbs: []string{"get", "list", "watch"},
	})
	l.must("allow it", l.Client.Update(t.Context(), role))
	l.eventually("the object in the cache", l.followed)
}

// A version that is not served any more is no sign that the object is gone: it is
// there in another one.
func TestAVersionThatIsNotServedIsNotAnObjectThatIsGone(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	l := newLibrary(t, c, c.Config)
	l.install(true)
	l.create()
	l.kind.Version = "v1beta1"
	l.eventually("the object in its older version", func(object *unstructured.Unstructured, err error) bool {
		return object != nil && err == nil
	})
	l.eventually("the older version in the cache", l.followed)
	told := l.told()
	l.install(false)
	one := types.NamespacedName{Namespace: l.namespace, Name: "one"}
	patience.Eventually(t, "the older version not to be served", func(ctx context.Context) (string, bool) {
		err := l.live.Get(ctx, one, l.blank())
		if object, err := l.read(l.kind.Version); object == nil && err == nil {
			t.Fatal("the object is taken for gone")
		}
		return fmt.Sprint(err), err != nil
	})
	// What the cache still has is of the time when it was served.
	l.eventually("the cache not to be believed", func(_ *unstructured.Unstructured, err error) bool { return err != nil && l.told() > told })
}

// Only a missing webhook, or a kind that came after the Machine, lets one name
// what is in no namespace.
func TestClusterScopedObjectsAreNoPartOfAMachine(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	l := newLibrary(t, c, c.Config)
	itself := types.NamespacedName{Namespace: l.namespace, Name: l.namespace}
	patience.Eventually(t, "namespaces to be in the cache", func(ctx context.Context) (string, bool) {
		found, err := l.objects.Get(ctx, itself, corev1.SchemeGroupVersion.WithKind("Namespace"))
		if found.Object != nil || err != nil {
			t.Fatalf("found %v, error %v, want nothing", found.Object, err)
		}
		return fmt.Sprint(found.Watched), found.Watched
	})
}
