// Command kubectl drains nodes with kubectl's own drain command, wired as
// kubectl wires it. It is a peer in Ebbtide's benchmark.
//
// It prints "ready" when discovery is cached, reads lines with node names
// separated by spaces, drains those nodes and prints "done".
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/drain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	qps := flag.Float64("qps", 0, "queries per second of the drain's client; 0 leaves what kubectl ships with")
	burst := flag.Int("burst", 0, "burst of the drain's client; 0 leaves what kubectl ships with")
	flag.Parse()
	if err := run(float32(*qps), *burst); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		os.Exit(1)
	}
}

func run(qps float32, burst int) error {
	factory := newFactory(qps, burst)
	discovery, err := factory.ToDiscoveryClient()
	if err != nil {
		return fmt.Errorf("make discovery client: %w", err)
	}
	if _, _, err := discovery.ServerGroupsAndResources(); err != nil {
		return fmt.Errorf("discover resources: %w", err)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := drainNodes(factory, strings.Fields(lines.Text())); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// newFactory is kubectl's. Its 50 queries a second with a burst of 300 are for
// discovery only: what drain sends is limited to client-go's 5 and 10, unless
// qps and burst say otherwise.
func newFactory(qps float32, burst int) cmdutil.Factory {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = qps, burst
		return config
	})
	return cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
}

func drainNodes(factory cmdutil.Factory, nodes []string) error {
	quiet := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	command := drain.NewCmdDrain(factory, quiet)
	command.SetArgs(append(nodes, "--ignore-daemonsets", "--delete-emptydir-data"))
	return command.Execute()
}
