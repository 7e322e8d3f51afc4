package validate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// east is a Cluster with this key in its kubeconfig Secret; without one it is the
// cluster that Ebbtide runs in.
func east(key string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "east"}}
	if key != "" {
		c.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "east-kubeconfig", Key: key}
	}
	return c
}

func TestReachesElsewhere(t *testing.T) {
	paused := east("value")
	paused.Spec.Paused = true
	for name, tt := range map[string]struct {
		old, new *v1alpha1.Cluster
		want     bool
	}{
		"a new one":                 {nil, east("value"), true},
		"a new one, here":           {nil, east(""), true},
		"the same Secret":           {east("value"), paused, false},
		"without a Secret, as ever": {east(""), east(""), false},
		"another key":               {east("value"), east("admin"), true},
		"its Secret removed":        {east("value"), east(""), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := validate.ReachesElsewhere(tt.new, tt.old); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestClusterRefusal(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster *v1alpha1.Cluster
		why     string
		want    string
	}{
		"here": {
			east(""), "",
			`user "jane" may not delete nodes, and the Machines of a Cluster without a kubeconfigSecretRef drain and delete nodes of this cluster: ` +
				`ask for the verb "delete" on nodes, or name the Secret with the kubeconfig of another cluster`,
		},
		"elsewhere": {
			east("value"), "no role",
			`user "jane" may not get Secret east-kubeconfig in namespace fleet (no role), and the Machines of the Cluster act with what is in it: ` +
				`ask for the verb "get" on this Secret`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, validate.ClusterRefusal("jane", tt.cluster, tt.why)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
