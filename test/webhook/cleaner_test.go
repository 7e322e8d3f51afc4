package webhook

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Nobody is asked when a namespace goes or garbage is collected: not even an
// evacuation that must not be cancelled holds that up.
func TestCleanersAreNotHeldUp(t *testing.T) {
	c := newAPI(t)
	for _, cleaner := range []string{"namespace-controller", "generic-garbage-collector"} {
		t.Run(cleaner, func(t *testing.T) {
			e := askedBy(newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "1")))
			must(t, c.Client.Create(t.Context(), e))
			e.Status = v1alpha1.EvacuationStatus{ActiveEvacuatorClass: "mover.example.com", EvacuationCancellationPolicy: v1alpha1.CancellationForbid}
			must(t, c.Client.Status().Update(t.Context(), e))

			config := rest.CopyConfig(c.Config)
			config.Impersonate = rest.ImpersonationConfig{
				UserName: "system:serviceaccount:kube-system:" + cleaner,
				Groups:   []string{"system:serviceaccounts", "system:authenticated"},
			}
			user, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
			must(t, err)
			must(t, user.Delete(t.Context(), e))
		})
	}
}
