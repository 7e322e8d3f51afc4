package step

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/test/patience"
)

// Only a missing webhook, or a kind that came after the Machine, lets one name
// what is in no namespace.
func TestWhatIsInNoNamespaceIsNoPartOfAMachine(t *testing.T) {
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
