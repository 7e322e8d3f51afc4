package workload

import (
	"cmp"
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

// defaultKey is the key of a Secret if none is specified.
const defaultKey = "value"

// source identifies the kubeconfig of a Cluster; the local one has no secret.
type source struct {
	cluster     types.NamespacedName
	uid         types.UID // of the Cluster: another one is another cluster
	secret, key string
}

func sourceOf(cluster *v1alpha1.Cluster) source {
	s := source{cluster: client.ObjectKeyFromObject(cluster), uid: cluster.UID}
	if ref := cluster.Spec.KubeconfigSecretRef; ref != nil {
		s.secret, s.key = ref.Name, cmp.Or(ref.Key, defaultKey)
	}
	return s
}

// config parses the result of read.
func (s source) config(content []byte, allowed Allowances) (*rest.Config, error) {
	config, err := parse(content, allowed)
	if err != nil {
		return nil, fmt.Errorf("Secret %s/%s, key %s: %w", s.cluster.Namespace, s.secret, s.key, err)
	}
	return config, nil
}

// read gets the kubeconfig from the API server: Secrets are not cached. Owners of Clusters bind
// the right to do so in their namespaces.
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

// parse returns the config of a kubeconfig. Whoever may write the Secret must not thereby run
// commands or read files where the manager runs.
func parse(content []byte, allowed Allowances) (*rest.Config, error) {
	kubeconfig, err := clientcmd.Load(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig does not parse: %s", unquoted(err.Error()))
	}
	at := kubeconfig.Contexts[kubeconfig.CurrentContext]
	if at == nil {
		return nil, fmt.Errorf("kubeconfig: current-context %q does not exist", kubeconfig.CurrentContext)
	}
	cluster, user := kubeconfig.Clusters[at.Cluster], kubeconfig.AuthInfos[at.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("kubeconfig: cluster %q or user %q of the current-context does not exist", at.Cluster, at.AuthInfo)
	}
	if err := refuseUnsafe(at, cluster, user, allowed); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, kubeconfig.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be used: %s", unquoted(err.Error()))
	}
	return config, nil
}

// refuseUnsafe returns an error for each field that is not allowed.
func refuseUnsafe(at *clientcmdapi.Context, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, allowed Allowances) error {
	server, err := url.Parse(cluster.Server)
	var refused []error
	for _, check := range []struct {
		fails             bool
		field, of, reason string
	}{
		{err != nil || server.Host == "" || server.Scheme != "https", "server of cluster", at.Cluster, "must be an address that begins with https://"},
		{err == nil && server.User != nil, "server of cluster", at.Cluster, "must not hold credentials"},
		{cluster.CertificateAuthority != "", "certificate-authority of cluster", at.Cluster, "names a file; use certificate-authority-data"},
		{
			cluster.ProxyURL != "" && !allowed[ProxyURL], "proxy-url of cluster", at.Cluster,
			"would bypass network policies; allow it with the manager's flag --allow-kubeconfig-fields=proxy-url",
		},
		{
			cluster.InsecureSkipTLSVerify && !allowed[InsecureSkipTLSVerify], "insecure-skip-tls-verify of cluster", at.Cluster,
			"would expose credentials to any server; use certificate-authority-data, or allow it with the manager's flag " +
				"--allow-kubeconfig-fields=insecure-skip-tls-verify",
		},
		{user.Exec != nil, "exec of user", at.AuthInfo, "would run a command; use a token or a client certificate"},
		{user.AuthProvider != nil, "auth-provider of user", at.AuthInfo, "is not supported; use a token or a client certificate"},
		{user.TokenFile != "", "tokenFile of user", at.AuthInfo, "names a file; use token"},
		{user.ClientCertificate != "", "client-certificate of user", at.AuthInfo, "names a file; use client-certificate-data"},
		{user.ClientKey != "", "client-key of user", at.AuthInfo, "names a file; use client-key-data"},
	} {
		if check.fails {
			refused = append(refused, fmt.Errorf("kubeconfig: %s %q %s", check.field, check.of, check.reason))
		}
	}
	return errors.Join(refused...)
}

// Allowances holds fields of a kubeconfig that are refused otherwise. Commands, plugins and files
// are always refused.
type Allowances map[string]bool

// Fields that can be allowed.
const (
	ProxyURL              = "proxy-url"
	InsecureSkipTLSVerify = "insecure-skip-tls-verify"
)

// ParseAllowances parses a comma-separated list of fields.
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
			return nil, fmt.Errorf("%q cannot be allowed, only %s and %s", name, ProxyURL, InsecureSkipTLSVerify)
		}
	}
	return allowed, nil
}

// quoted matches what a parser quotes of a text, which may be secret.
var quoted = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")

// unquoted removes quoted parts from the error of a parser.
func unquoted(text string) string { return quoted.ReplaceAllString(text, "...") }
