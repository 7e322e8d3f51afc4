package attack

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// Whoever may write a Secret and a Cluster decides where the manager connects to.
var ofRemote = []attempt{
	{"runs a program of the manager's pod", connects("exec", func(c *clientcmdapi.Config) {
		c.AuthInfos["admin"].Exec = &clientcmdapi.ExecConfig{Command: "id", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	}), v1alpha1.ReasonUnreachable},
	{"reads a file of the manager's pod", connects("file", func(c *clientcmdapi.Config) {
		c.AuthInfos["admin"].TokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	}), v1alpha1.ReasonUnreachable},
	{"uses a plugin", connects("plugin", func(c *clientcmdapi.Config) {
		c.AuthInfos["admin"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "any"}
	}), v1alpha1.ReasonUnreachable},
	{"goes through a proxy", connects("proxy", func(c *clientcmdapi.Config) { c.Clusters["east"].ProxyURL = "http://127.0.0.1:1" }), v1alpha1.ReasonUnreachable},
	{"is not verified", connects("insecure", func(c *clientcmdapi.Config) { c.Clusters["east"].InsecureSkipTLSVerify = true }), v1alpha1.ReasonUnreachable},
}

// connects has a Machine in a cluster with this kubeconfig, and returns what the manager says
// of it.
func connects(name string, change func(*clientcmdapi.Config)) func(*stage, client.Client) error {
	return func(s *stage, _ client.Client) error {
		s.t.Helper()
		key := client.ObjectKey{Namespace: s.names.Replace("TEAM"), Name: name}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: map[string][]byte{"value": remote.Kubeconfig(s.t, change)}}
		if err := s.Client.Create(s.t.Context(), secret); err != nil {
			s.t.Fatal(err)
		}
		s.Apply(s.t, key.Namespace, fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s}
spec: {kubeconfigSecretRef: {name: %[1]s}}
---
apiVersion: ebbtide.dev/v1alpha1
kind: Machine
metadata: {name: %[1]s}
spec: {clusterName: %[1]s, providerID: "kwok://%[1]s", infrastructureRef: {apiVersion: infra.example.com/v1, kind: BareMachine, name: %[1]s}}`, name))
		var said *metav1.Condition
		patience.Eventually(s.t, "what is said of cluster "+name, func(ctx context.Context) (string, bool) {
			stored := &v1alpha1.Cluster{}
			err := s.Client.Get(ctx, key, stored)
			said = meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReachable)
			return fmt.Sprintf("%+v %v", stored.Status, err), said != nil && said.Status != metav1.ConditionUnknown
		})
		if said.Status == metav1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("%q: %s", said.Reason, said.Message)
	}
}
