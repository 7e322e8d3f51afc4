package scenario

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// badInput is a Cluster that cannot be used.
type badInput struct {
	*remote
	// says is what the Cluster and its Machine say.
	says string
}

// Whatever is wrong with a kubeconfig is said in words, by the Cluster and by a
// Machine of it that is deleted; nothing of that Machine is skipped. As soon as
// the Secret is repaired the deletion goes on.
func TestLongAKubeconfigThatCannotBeUsedIsNamedUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	inputs := []badInput{
		w.missing(), w.withoutKey(), w.malformed(), w.executing(), w.refused(), w.hanging(), w.otherServer(),
	}
	machines := make([]string, len(inputs))
	for i, input := range inputs {
		machines[i] = input.found("m")
		input.pods(machines[i], pod{name: "web"})
		w.deleteMachines(machines[i])
	}

	for i, input := range inputs {
		input.awaitLost(input.says)
		input.awaitStuck(machines[i], input.says)
		input.awaitPod("web", "still running", running)
		input.assertUnschedulable(machines[i], false)
	}
	for _, input := range inputs {
		input.proxy.Restore()
		input.store(input.proxy.Kubeconfig(t))
	}
	for i, input := range inputs {
		input.awaitGone("web")
		input.awaitNothingOf(machines[i])
	}
}

func (w *world) missing() badInput {
	r := w.elsewhere("missing")
	return badInput{r, "Secret " + w.ns + "/missing does not exist"}
}

func (w *world) withoutKey() badInput {
	r := w.elsewhere("without-key")
	r.storeAs("kubeconfig", r.proxy.Kubeconfig(w.t))
	return badInput{r, "Secret " + w.ns + "/without-key: key value is missing or empty"}
}

func (w *world) malformed() badInput {
	r := w.elsewhere("malformed")
	r.store([]byte("apiVersion: v1\nkind: [Config"))
	return badInput{r, "Secret " + w.ns + "/malformed, key value: kubeconfig does not parse: "}
}

func (w *world) executing() badInput {
	r := w.elsewhere("executing")
	r.store(r.kubeconfig(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "login", InteractiveMode: "Never"}
	}))
	return badInput{r, `kubeconfig: exec of user "admin" would run a command; use a token or a client certificate`}
}

// refused leads to a port that nobody listens at.
func (w *world) refused() badInput {
	r := w.elsewhere("refused")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must("find a free port", err)
	url := "https://" + listener.Addr().String()
	w.must("free the port", listener.Close())
	r.store(r.leadingTo(url, nil))
	return badInput{r, "connect to " + url + ": connect: connection refused"}
}

// hanging leads to a port that takes connections and never answers.
func (w *world) hanging() badInput {
	r := w.elsewhere("hanging")
	r.proxy.Hang()
	r.store(r.proxy.Kubeconfig(w.t))
	return badInput{r, "connect to " + r.proxy.URL() + ": no answer in time"}
}

// otherServer leads to a web server that is no API server.
func (w *world) otherServer() badInput {
	r := w.elsewhere("other-server")
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(answer, "It works!")
	}))
	w.t.Cleanup(server.Close)
	r.store(r.leadingTo(server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return badInput{r, "connect to " + server.URL + ": the server is not a Kubernetes API server"}
}

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
