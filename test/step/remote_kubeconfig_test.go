package step

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// secretToken is in every kubeconfig of these tests and in no message.
const secretToken = "very-secret-token"

// written is a kubeconfig with a token, changed.
func written(t *testing.T, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["east"] = &clientcmdapi.Cluster{Server: "https://east.example:6443"}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: secretToken}
	config.Contexts["admin@east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "admin"}
	config.CurrentContext = "admin@east"
	change(config)
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
