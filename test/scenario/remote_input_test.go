package scenario

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is the administrator's, changed.
func (r *remote) kubeconfig(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	r.t.Helper()
	config, err := clientcmd.Load(r.proxy.Kubeconfig(r.t))
	r.must("read the kubeconfig", err)
	at := config.Contexts[config.CurrentContext]
	change(config.Clusters[at.Cluster], config.AuthInfos[at.AuthInfo])
	content, err := clientcmd.Write(*config)
	r.must("write the kubeconfig", err)
	return content
}

func (r *remote) leadingTo(url string, authority []byte) []byte {
	r.t.Helper()
	return r.kubeconfig(func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		cluster.Server = url
		if authority != nil {
			cluster.CertificateAuthorityData = authority
		}
	})
}
