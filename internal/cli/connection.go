package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// connection are the flags of kubectl that choose a cluster and a user. They come from client-go:
// cli-runtime would make the plugin nearly twice as large.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	flags      *pflag.FlagSet
}

// shownFlags are listed in the help; the others work, too.
var shownFlags = []string{"as", "context", "kubeconfig", "namespace"}

// repeatedFlags go into suggested commands. None of them is a secret.
var repeatedFlags = []string{"as", "cluster", "context", "kubeconfig", "server", "user"}

// addFlags adds the flags to a verb, and inWords to its errors.
func (c *connection) addFlags(cmd *cobra.Command) {
	c.flags = cmd.Flags()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.Timeout.Default = answerWithin.String()
	names.Timeout.Description = "time to wait for a single request (e.g. 5s); 0 waits forever"
	clientcmd.BindOverrideFlags(&c.overrides, all, names)
	all.StringVar(&c.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file")
	all.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !slices.Contains(shownFlags, flag.Name) })
	c.flags.AddFlagSet(all)
	verbosity := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(verbosity)
	c.flags.AddGoFlag(verbosity.Lookup("v"))
	c.flags.Lookup("v").Hidden = true
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.inWords(run(cmd, args)) }
	}
}

// ebbtide returns Ebbtide's namespace: that of --namespace, otherwise the usual one.
func (c *connection) ebbtide() string {
	if c.overrides.Context.Namespace != "" {
		return c.overrides.Context.Namespace
	}
	return usualNamespace
}

// verbose matches -v and -v=6, as in kubectl.
var verbose = regexp.MustCompile(`^--?v(=?\d+)?$`)

// Verbose reports whether the user asks for the logs of libraries.
func Verbose(args []string) bool { return slices.ContainsFunc(args, verbose.MatchString) }

// open returns the clients of the cluster, its clock and the chosen namespace. Warnings of the API
// server are printed.
func (c *connection) open(warnings io.Writer) (clients kubernetes.Interface, now *clock, namespace string, err error) {
	config, now, namespace, err := c.config(warnings)
	if err != nil {
		return nil, nil, "", err
	}
	clients, err = kubernetes.NewForConfig(config)
	return clients, now, namespace, err
}

// reach is open with a client for the kinds of Kubernetes and of Ebbtide.
func (c *connection) reach(warnings io.Writer) (reached client.WithWatch, now *clock, namespace string, err error) {
	config, now, namespace, err := c.config(warnings)
	if err != nil {
		return nil, nil, "", err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, "", err
	}
	reached, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return reached, now, namespace, err
}

// noCluster is the error of a user without a kubeconfig.
func (c *connection) noCluster() error {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" && c.kubeconfig == "" {
		return fmt.Errorf("KUBECONFIG=%s names no cluster; check that the file exists, or use --kubeconfig or --server", excerpt.Line(files, maxSaid))
	}
	return errors.New("no cluster is configured; set KUBECONFIG or use --kubeconfig or --server")
}

// config returns how to reach the cluster, and its clock.
func (c *connection) config(warnings io.Writer) (config *rest.Config, now *clock, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
	config, err = loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = c.noCluster()
	}
	if err != nil {
		return nil, nil, "", err
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, nil, "", err
	}
	now = &clock{}
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	// Priority and fairness of the API server limits the rate.
	config.QPS = -1
	// The timeout of a client would end watches, too.
	within := config.Timeout
	config.Timeout = 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, now} })
	kube.Bound(config, within)
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}).DialContext
	}
	return config, now, namespace, nil
}

// again returns the flags that choose the same cluster and, unless it is empty, this namespace.
func (c *connection) again(namespace string) (words command.Quoted) {
	if namespace != "" {
		words = command.Join(" -n %s", command.Quote(namespace))
	}
	c.flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(repeatedFlags, flag.Name) {
			words = command.Join("%s --%s %s", words, flag.Name, command.Quote(flag.Value.String()))
		}
	})
	return words
}

// kubectl returns a command of kubectl for the same cluster.
func (c *connection) kubectl(format string, args ...any) string {
	return command.Of("kubectl %s%s", command.Join(format, args...), c.again(""))
}

// command returns a command of the plugin for the same cluster.
func (c *connection) command(format string, args ...any) string {
	return command.Of("%s %s%s", commandName(), command.Join(format, args...), c.again(""))
}

// viewConfig returns the command that shows the chosen cluster.
func (c *connection) viewConfig() string {
	words := command.Join("kubectl config view --minify")
	for _, name := range []string{"context", "kubeconfig"} {
		if c.flags.Changed(name) {
			words = command.Join("%s --%s %s", words, name, command.Quote(c.flags.Lookup(name).Value.String()))
		}
	}
	return words.String()
}

// clock estimates the time of the API server from the dates of its answers. The clock of this
// machine may differ.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

// now returns the date of the last answer.
func (c *clock) now() (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return time.Time{}, errors.New("the answers of the API server have no Date header; check the proxies in between")
	}
	return c.last, nil
}

// dated records the dates of answers.
type dated struct {
	http.RoundTripper
	*clock
}

// RoundTrip implements http.RoundTripper.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.mu.Lock()
		d.last = date
		d.mu.Unlock()
	}
	return answer, nil
}
