package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// ReachesElsewhere reports whether a new or changed Cluster uses another cluster or account.
func ReachesElsewhere(c, old *v1alpha1.Cluster) bool {
	return old == nil || !equality.Semantic.DeepEqual(c.Spec.KubeconfigSecretRef, old.Spec.KubeconfigSecretRef)
}

// ClusterRefusal refuses a user who may neither delete nodes nor read the kubeconfig.
func ClusterRefusal(user string, c *v1alpha1.Cluster, why string) string {
	if why != "" {
		why = " (" + why + ")"
	}
	ref := c.Spec.KubeconfigSecretRef
	if ref == nil {
		return fmt.Sprintf("user %q may not delete nodes%s, and the Machines of a Cluster without a kubeconfigSecretRef drain and delete nodes of this cluster: "+
			`ask for the verb "delete" on nodes, or name the Secret with the kubeconfig of another cluster`, user, why)
	}
	return fmt.Sprintf("user %q may not get Secret %s in namespace %s%s, and the Machines of the Cluster act with what is in it: "+
		`ask for the verb "get" on this Secret`, user, ref.Name, c.Namespace, why)
}
