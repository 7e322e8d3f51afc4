package cluster

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/patience"
)

// StartProgram runs the main package in a folder of this module until the test ends. When the
// test fails, what it logged last about the test is shown.
func (c *Cluster) StartProgram(t testing.TB, folder string, args ...string) *sandbox.Program {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	program, err := c.plane.StartProgram(ctx, folder, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		program.Kill()
	})
	c.explain(t, folder, func() logged { return program })
	return program
}

// ServiceAccountKubeconfig writes a kubeconfig for a ServiceAccount, valid for
// an hour, and returns its path.
func (c *Cluster) ServiceAccountKubeconfig(t testing.TB, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{}
	if err := c.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatalf("ask for a token of ServiceAccount %s: %v", name, err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}}
	config.Contexts[config.CurrentContext].AuthInfo = name
	path := filepath.Join(t.TempDir(), name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
