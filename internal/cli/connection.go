package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
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
)

// connection is how the user reaches the cluster: the flags of kubectl, by their
// names and with their meaning. They come from client-go: cli-runtime would make
// the plugin nearly twice as large for the same.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	flags      *pflag.FlagSet
}

// shownFlags are those that help lists. The others are for scripts.
var shownFlags = []string{"as", "context", "kubeconfig", "namespace"}

// repeatedFlags go into the commands that we propose. None of them is a secret.
var repeatedFlags = []string{"as", "cluster", "context", "kubeconfig", "server", "user"}

// addFlags adds them to a verb, whose errors are put into words from then on, see inWords.
func (c *connection) addFlags(cmd *cobra.Command) {
	c.flags = cmd.Flags()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.Timeout.Default = answerWithin.String()
	names.Timeout.Description = "how long a request to the cluster may take, such as 5s; 0 is as long as it takes"
	clientcmd.BindOverrideFlags(&c.overrides, all, names)
	all.StringVar(&c.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests.")
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

// ebbtide is Ebbtide's namespace: that which the user names, or where it usually is.
func (c *connection) ebbtide() string {
	if c.overrides.Context.Namespace != "" {
		return c.overrides.Context.Namespace
	}
	return usualNamespace
}

// verbose are -v and -v=6, which kubectl has too.
var verbose = regexp.MustCompile(`^--?v(=?\d+)?$`)

// Verbose returns true if the user wants to read what libraries log, such as requests.
func Verbose(args []string) bool { return slices.ContainsFunc(args, verbose.MatchString) }

// open returns the clients of the cluster, its clock and the namespace that is meant.
func (c *connection) open(warnings io.Writer) (clients kubernetes.Interface, now *clock, namespace string, err error) {
	config, now, namespace, err := c.config()
	if err != nil {
		return nil, nil, "", err
	}
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	clients, err = kubernetes.NewForConfig(config)
	return clients, now, namespace, err
}

// reach is open with a client for kinds of Kubernetes and for ours. Warnings of the API
// server are left out.
func (c *connection) reach() (reached client.WithWatch, now *clock, namespace string, err error) {
	return c.reachWarned(io.Discard)
}

// reachWarned is reach for a verb that writes, whose user reads the API server's warnings.
func (c *connection) reachWarned(warnings io.Writer) (reached client.WithWatch, now *clock, namespace string, err error) {
	config, now, namespace, err := c.config()
	if err != nil {
		return nil, nil, "", err
	}
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, "", err
	}
	reached, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return reached, now, namespace, err
}

// noCluster is the error of a user who has named no cluster.
func noCluster() error {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		return fmt.Errorf("no cluster is named in KUBECONFIG=%s; see whether the file exists, or use --kubeconfig or --server", excerpt.Line(files, maxSaid))
	}
	return errors.New("no cluster is named; set KUBECONFIG or use --kubeconfig or --server")
}

// config is how to reach the cluster; its clock is that of the answers.
func (c *connection) config() (config *rest.Config, now *clock, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
	config, err = loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = noCluster()
	}
	if err != nil {
		return nil, nil, "", err
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, nil, "", err
	}
	now = &clock{}
	// How much it takes, the API server says itself.
	config.QPS = -1
	within := config.Timeout
	// It would end watches, too.
	config.Timeout = 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return hurried{now.wrap(next), within} })
	if config.Dial == nil {
		config.Dial = dialer(connectWithin)
	}
	return config, now, namespace, nil
}

// again returns the user's flags for a command about the same cluster and, unless
// it is empty, this namespace.
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

// kubectl is a command of kubectl about the same cluster.
func (c *connection) kubectl(format string, args ...any) string {
	return command.Of("kubectl %s%s", command.Join(format, args...), c.again(""))
}

// command is one of ours about the same cluster.
func (c *connection) command(format string, args ...any) string {
	return command.Of("%s %s%s", commandName(), command.Join(format, args...), c.again(""))
}

// viewConfig is the command that shows which cluster is meant.
func (c *connection) viewConfig() string {
	words := command.Join("kubectl config view --minify")
	for _, name := range []string{"context", "kubeconfig"} {
		if c.flags.Changed(name) {
			words = command.Join("%s --%s %s", words, name, command.Quote(c.flags.Lookup(name).Value.String()))
		}
	}
	return words.String()
}

// clock is that of the API server, by its answers. Who is right about when a lock
// ends is no question of the clock of the machine that asks.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

func (c *clock) wrap(next http.RoundTripper) http.RoundTripper { return dated{next, c} }

// now is when the API server has last answered.
func (c *clock) now() (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return time.Time{}, errors.New("the answers of the API server do not say what time it is: a proxy on the way must not take their Date away")
	}
	return c.last, nil
}

// dated notes the dates of answers.
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
