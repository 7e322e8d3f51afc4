package validate_test

import (
	"testing"

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

func TestClusterWithAnotherSecretReachesElsewhere(t *testing.T) {
	paused := east("value")
	paused.Spec.Paused = true
	for name, tt := range map[string]struct {
		old, new *v1alpha1.Cluster
		want     bool
	}{
		"a new one, here":           {nil, east(""), true},
		"without a Secret, as ever": {east(""), east(""), false},
		"its Secret removed":        {east("value"), east(""), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := validate.ReachesElsewhere(tt.new, tt.old); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestClusterWithoutRightsIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster *v1alpha1.Cluster
		why     string
	}{
		"here":      {east(""), ""},
		"elsewhere": {east("value"), "no role"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, true, validate.ClusterRefusal("jane", tt.cluster, tt.why))
		})
	}
}
