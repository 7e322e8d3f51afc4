package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxNamed is how many of many names a sentence has.
const maxNamed = 10

// someOf joins names as a list, and says how many are left out.
func someOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return phrase.And(names)
}

// nodeKinds are the names of the kind that kubectl takes.
var nodeKinds = []string{"node", "nodes", "no"}

// choice is which nodes are meant: by name, or by labels.
type choice struct {
	Selector string
	// Yes says that a selector may mean all nodes.
	Yes bool
	// Names are the nodes that are named, each once, in the order of the arguments.
	Names []string

	writes bool
	labels labels.Selector
}

// addFlags adds --selector and, for a verb that writes, --yes.
func (c *choice) addFlags(cmd *cobra.Command, writes bool, to *connection) {
	c.writes = writes
	cmd.Flags().StringVarP(&c.Selector, "selector", "l", "", "the nodes with these labels, such as pool=a,zone!=b, instead of names")
	_ = cmd.RegisterFlagCompletionFunc("selector", to.suggestLabels)
	if writes {
		cmd.Flags().BoolVar(&c.Yes, "yes", false, "do it although the labels are those of all nodes")
	}
}

// complete reads the arguments: NODE, node/NODE, and "node NODE...". It asks nobody.
func (c *choice) complete(args []string) (err error) {
	if len(args) > 1 && isNodeKind(args[0]) {
		args = args[1:]
	}
	c.Names = nil
	for _, arg := range args {
		name, err := nodeName(arg)
		if err != nil {
			return err
		}
		if strings.Contains(name, ",") {
			return fmt.Errorf("%q is no node: put blanks between nodes, not commas", excerpt.Line(arg, 260))
		}
		if name != "" && !slices.Contains(c.Names, name) {
			c.Names = append(c.Names, name)
		}
	}
	switch {
	case len(c.Names) > 0 && c.Selector != "":
		return errors.New("name nodes, or choose them by labels with -l, not both")
	case len(c.Names) == 0 && strings.TrimSpace(c.Selector) == "":
		return errors.New("name a node, or choose nodes by labels with -l")
	}
	if c.labels, err = labels.Parse(c.Selector); err != nil {
		return fmt.Errorf("-l %q is no label selector: %w", c.Selector, err)
	}
	return nil
}

func isNodeKind(word string) bool { return slices.Contains(nodeKinds, strings.ToLower(word)) }

// nodeName reads NODE and node/NODE.
func nodeName(arg string) (string, error) {
	kind, name, found := strings.Cut(arg, "/")
	switch {
	case !found:
		return arg, nil
	case !isNodeKind(kind), name == "", strings.Contains(name, "/"):
		return "", fmt.Errorf("%q is no node: name nodes as NAME or node/NAME", excerpt.Line(arg, 260))
	}
	return name, nil
}

// pick returns those nodes of the cluster that are meant: the named ones in the order of
// the arguments, others in their own.
//
// Errors: a name that no node has, with names that are near; labels that no node has; for
// a verb that writes, labels of all nodes without --yes.
func pick[N metav1.Object](c *choice, cluster []N) ([]N, error) {
	if len(c.Names) > 0 {
		return named(c.Names, cluster)
	}
	var picked []N
	for _, node := range cluster {
		if c.labels.Matches(labels.Set(node.GetLabels())) {
			picked = append(picked, node)
		}
	}
	switch {
	case len(picked) == 0:
		return nil, fmt.Errorf("no node has the labels %s; kubectl get nodes --show-labels shows which there are", c.Selector)
	case len(picked) == len(cluster) && c.writes && !c.Yes:
		return nil, fmt.Errorf("the labels %s are those of every node of the cluster (%d), and no node would be left for their pods: say --yes if you mean that", c.Selector, len(cluster))
	}
	return picked, nil
}

func named[N metav1.Object](names []string, cluster []N) ([]N, error) {
	known := make(map[string]N, len(cluster))
	all := make([]string, 0, len(cluster))
	for _, node := range cluster {
		known[node.GetName()] = node
		all = append(all, node.GetName())
	}
	var picked []N
	var unknown []string
	for _, name := range names {
		if node, found := known[name]; found {
			picked = append(picked, node)
			continue
		}
		unknown = append(unknown, name)
	}
	if len(unknown) > 0 {
		return nil, unknownNames("node", unknown, all)
	}
	return picked, nil
}

// unknownNames says that there is nothing of these names, and which are near.
func unknownNames(kind string, unknown, all []string) error {
	words := make([]string, 0, min(len(unknown), maxNamed))
	for _, name := range unknown[:min(len(unknown), maxNamed)] {
		word := excerpt.Line(name, 253)
		if meant := near(name, all); len(meant) > 0 {
			word += " (do you mean " + phrase.Or(meant) + "?)"
		}
		words = append(words, word)
	}
	rest := ""
	if more := len(unknown) - len(words); more > 0 {
		rest = fmt.Sprintf(", and %d more", more)
	}
	return fmt.Errorf("there is no %s %s%s", kind, strings.Join(words, ", "), rest)
}

// nodes reads the nodes of the cluster without their status, as far as pick needs them.
func nodes(ctx context.Context, reached client.Client) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	all, err := pages(ctx, reached, list, whole[*metav1.PartialObjectMetadata])
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}
