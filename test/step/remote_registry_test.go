package step

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// same leaves the administrator's kubeconfig as it is.
func same(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}

// A cluster that is cut off, or that hangs, is told at the next probe; what was
// missed meanwhile is there as soon as it is back.
func TestAClusterThatIsCutOffForAWhile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		interrupt func(*cluster.Proxy)
		want      string
	}{
		"cut":   {(*cluster.Proxy).Cut, ""},
		"hangs": {(*cluster.Proxy).Hang, "no answer in time"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startRemotes(t, workload.Options{Pace: &quick})
			proxy := w.Proxy(t)
			east, west := w.remote(t, "east", proxy.Kubeconfig(t)), w.remote(t, "west", w.kubeconfig(t, same))
			lost, steady := w.connect(t, east), w.connect(t, west)

			test.interrupt(proxy)

			w.isLost(t, east, lost, "connect to "+proxy.URL()+": "+test.want)
			if again := w.connect(t, west); again != steady {
				t.Error("another cluster was connected anew, want it to be left alone")
			}

			w.Apply(t, w.namespace, missedClaim)
			proxy.Restore()

			claim := &corev1.PersistentVolumeClaim{}
			if err := w.connect(t, east).Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "missed"}, claim); err != nil {
				t.Errorf("what was created meanwhile: %v", err)
			}
			if state := w.registry.State(client.ObjectKeyFromObject(east)); state.Status != metav1.ConditionTrue {
				t.Errorf("state = %+v, want True", state)
			}
		})
	}
}

// isLost waits until a cluster is unreachable for a reason that begins so. Nobody
// waits for such a cluster.
func (w *remotes) isLost(t *testing.T, c *v1alpha1.Cluster, lost *workload.Connection, message string) {
	t.Helper()
	state := w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
	if !strings.HasPrefix(state.Message, message) || state.Status != metav1.ConditionFalse {
		t.Errorf("state = %+v, want False and %q", state, message)
	}
	_, err := w.registry.Use(c, usingMachine)
	if !errors.Is(err, workload.ErrUnreachable) || !strings.Contains(err.Error(), "is unreachable since "+state.Since.UTC().Format(time.RFC3339)+": connect to ") {
		t.Errorf("use = %v, want that it is unreachable, since when and why", err)
	}
	if err := lost.Live.Get(t.Context(), client.ObjectKey{Name: w.namespace}, &corev1.Namespace{}); err == nil || os.IsTimeout(err) {
		t.Errorf("a connection of before ends with %v, want that it has failed for good and asks nobody", err)
	}
}

const missedClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: missed}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

// The connection is kept for a while when its last user has gone.
func TestUnusedClusterIsDisconnected(t *testing.T) {
	t.Parallel()
	clock, idle := clocktesting.NewFakeClock(time.Now()), workload.UsualPace().Idle
	w := startRemotes(t, workload.Options{Clock: clock})
	c := w.remote(t, "east", w.kubeconfig(t, same))
	key := client.ObjectKeyFromObject(c)
	connection := w.connect(t, c)
	other := types.NamespacedName{Namespace: "machines", Name: "other"}
	if _, err := w.registry.Use(c, other); err != nil {
		t.Fatal(err)
	}

	w.registry.Release(key, usingMachine)
	clock.Step(2 * idle)
	if state := w.registry.State(key); state.Reason != v1alpha1.ReasonReachable {
		t.Errorf("state = %+v while there is another user, want it to be reachable", state)
	}
	w.registry.Release(key, other)
	clock.Step(idle - time.Second)
	if again := w.connect(t, c); again != connection {
		t.Error("it was connected anew, want the connection of before")
	}
	w.registry.Release(key, usingMachine)
	w.registry.Release(key, usingMachine)
	clock.Step(idle)

	state := w.awaitReason(t, c, v1alpha1.ReasonNotInUse)
	if state.Status != metav1.ConditionUnknown || state.Message != "No Machine needs the cluster." {
		t.Errorf("state = %+v, want Unknown and why", state)
	}
	patience.Eventually(t, "the end of the connection", func(ctx context.Context) (string, bool) {
		err := connection.Live.Get(ctx, client.ObjectKey{Name: w.namespace}, &corev1.Namespace{})
		return "it still reads", err != nil
	})
	if again := w.connect(t, c); again == connection {
		t.Error("it has the connection of before, want a new one")
	}
}

// A Cluster whose Secret is another one now is connected anew.
func TestAClusterWhoseKubeconfigIsAnotherOne(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
	w.remote(t, "right", w.kubeconfig(t, same))
	w.secret(t, "wrong", map[string][]byte{"value": []byte("nonsense")})
	c := w.named("east", "wrong")
	if _, err := w.registry.Use(c, usingMachine); err == nil {
		t.Fatal("a Cluster without a kubeconfig is connected")
	}
	w.awaitReason(t, c, v1alpha1.ReasonUnreachable)

	c.Spec.KubeconfigSecretRef.Name = "right"
	w.connect(t, c)
	c.Spec.KubeconfigSecretRef.Name = "wrong"
	if _, err := w.registry.Use(c, usingMachine); !errors.Is(err, workload.ErrConnecting) {
		t.Errorf("use = %v, want that it is connected anew", err)
	}
	w.awaitReason(t, c, v1alpha1.ReasonUnreachable)
}
