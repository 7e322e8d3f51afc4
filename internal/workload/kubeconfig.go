package workload

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// usualKey is the key of a Secret that is meant if none is named.
const usualKey = "value"

// source is where the kubeconfig of a Cluster is; without a Secret it needs none.
type source struct {
	cluster     types.NamespacedName
	uid         types.UID // of the Cluster: another one is another cluster
	secret, key string
}

func sourceOf(cluster *v1alpha1.Cluster) source {
	s := source{cluster: client.ObjectKeyFromObject(cluster), uid: cluster.UID}
	if ref := cluster.Spec.KubeconfigSecretRef; ref != nil {
		s.secret, s.key = ref.Name, ref.Key
		if s.key == "" {
			s.key = usualKey
		}
	}
	return s
}

func (s source) remote() bool { return s.secret != "" }

// config makes a config of what read returns.
func (s source) config(content []byte, allowed Allowances) (*rest.Config, error) {
	config, err := parse(content, allowed)
	if err != nil {
		return nil, fmt.Errorf("Secret %s/%s, key %s: %w", s.cluster.Namespace, s.secret, s.key, err)
	}
	return config, nil
}

// read gets the kubeconfig from the API server: Secrets are not cached. The right to
// do so is bound by those who have Clusters, in the namespaces in which they have them.
func (s source) read(ctx context.Context, live client.Reader) ([]byte, error) {
	key := types.NamespacedName{Namespace: s.cluster.Namespace, Name: s.secret}
	secret := &corev1.Secret{}
	switch err := live.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s does not exist", key)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("read Secret %s: bind the ClusterRole ebbtide-kubeconfigs to Ebbtide's ServiceAccount in namespace %s: %w", key, key.Namespace, err)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	content := secret.Data[s.key]
	if len(content) == 0 {
		return nil, fmt.Errorf("Secret %s: key %s is missing or empty", key, s.key)
	}
	return content, nil
}

// parse makes a config of a kubeconfig. Whoever may write the Secret must not
// thereby run commands or read files where the manager runs.
func parse(content []byte, allowed Allowances) (*rest.Config, error) {
	kubeconfig, err := clientcmd.Load(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig does not parse: %s", unquoted(err.Error()))
	}
	current := kubeconfig.CurrentContext
	if current == "" {
		return nil, errors.New("kubeconfig has no current-context")
	}
	at := kubeconfig.Contexts[current]
	if at == nil {
		return nil, fmt.Errorf("kubeconfig has no context %q, which its current-context names", current)
	}
	cluster, user := kubeconfig.Clusters[at.Cluster], kubeconfig.AuthInfos[at.AuthInfo]
	if cluster == nil {
		return nil, fmt.Errorf("kubeconfig has no cluster %q, which context %q names", at.Cluster, current)
	}
	if user == nil {
		return nil, fmt.Errorf("kubeconfig has no user %q, which context %q names", at.AuthInfo, current)
	}
	if err := errors.Join(safeCluster(at.Cluster, cluster, allowed), safeUser(at.AuthInfo, user)); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, current, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be used: %s", unquoted(err.Error()))
	}
	return config, nil
}

// Allowances are fields of a kubeconfig that are refused unless they are in it.
// Commands, plugins and files are always refused.
type Allowances map[string]bool

// Fields that can be allowed.
const (
	ProxyURL              = "proxy-url"
	InsecureSkipTLSVerify = "insecure-skip-tls-verify"
)

// ParseAllowances reads a list of fields that is separated by commas.
//
// Errors: a field cannot be allowed.
func ParseAllowances(list string) (Allowances, error) {
	allowed := Allowances{}
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case ProxyURL, InsecureSkipTLSVerify:
			allowed[name] = true
		case "":
		default:
			return nil, fmt.Errorf("%q cannot be allowed; what can be is %s and %s", name, ProxyURL, InsecureSkipTLSVerify)
		}
	}
	return allowed, nil
}

// safeCluster refuses a cluster that has no address, names files, or is reached in
// a way that is not allowed.
func safeCluster(name string, cluster *clientcmdapi.Cluster, allowed Allowances) error {
	switch server, err := url.Parse(cluster.Server); {
	case err != nil || server.Host == "" || server.Scheme != "https":
		return fmt.Errorf("kubeconfig: server of cluster %q is no address that begins with https://", name)
	case server.User != nil:
		return fmt.Errorf("kubeconfig: server of cluster %q must not hold credentials", name)
	case cluster.CertificateAuthority != "":
		return fmt.Errorf("kubeconfig: certificate-authority of cluster %q names a file; use certificate-authority-data", name)
	case cluster.ProxyURL != "" && !allowed[ProxyURL]:
		return fmt.Errorf("kubeconfig: proxy-url of cluster %q would lead us past the network's rules; "+
			"allow it with --allow-kubeconfig-fields=proxy-url of the manager", name)
	case cluster.InsecureSkipTLSVerify && !allowed[InsecureSkipTLSVerify]:
		return fmt.Errorf("kubeconfig: insecure-skip-tls-verify of cluster %q would give its credentials to whoever answers; use "+
			"certificate-authority-data, or allow it with --allow-kubeconfig-fields=insecure-skip-tls-verify of the manager", name)
	}
	return nil
}

// safeUser refuses credentials that come of commands or files.
func safeUser(name string, user *clientcmdapi.AuthInfo) error {
	var refused []error
	for _, field := range []struct {
		name   string
		set    bool
		advice string
	}{
		{"exec", user.Exec != nil, "would run a command; use a token or a client certificate"},
		{"auth-provider", user.AuthProvider != nil, "is not supported; use a token or a client certificate"},
		{"tokenFile", user.TokenFile != "", "names a file; use token"},
		{"client-certificate", user.ClientCertificate != "", "names a file; use client-certificate-data"},
		{"client-key", user.ClientKey != "", "names a file; use client-key-data"},
	} {
		if field.set {
			refused = append(refused, fmt.Errorf("kubeconfig: %s of user %q %s", field.name, name, field.advice))
		}
	}
	return errors.Join(refused...)
}

// quoted is what a parser quotes of the text that it does not understand.
var quoted = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")

// unquoted leaves out of an error of a parser what may be secret.
func unquoted(text string) string { return quoted.ReplaceAllString(text, "...") }
