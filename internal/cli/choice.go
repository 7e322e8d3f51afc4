package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxNamed bounds how many of many names a sentence lists.
const maxNamed = 10

// someOf joins names as a list, and counts those that are left out.
func someOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return phrase.And(names)
}

// choice selects nodes by name or by labels.
type choice struct {
	Selector string
	// Yes allows a selector that matches all nodes.
	Yes bool
	// Names are the named nodes, each once, in the order of the arguments.
	Names []string

	writes bool
	labels labels.Selector
}

// addFlags adds --selector and, for a verb that writes, --yes.
func (c *choice) addFlags(cmd *cobra.Command, writes bool, to *connection) {
	c.writes = writes
	cmd.Flags().StringVarP(&c.Selector, "selector", "l", "", "label selector to choose nodes by, instead of names (e.g. pool=a,zone!=b)")
	_ = cmd.RegisterFlagCompletionFunc("selector", to.suggestLabels)
	if writes {
		cmd.Flags().BoolVar(&c.Yes, "yes", false, "allow a selector that matches all nodes")
	}
}

// complete takes the nodes that the arguments name.
func (c *choice) complete(subjects []subject) (err error) {
	c.Names = nil
	for _, s := range subjects {
		if !slices.Contains(c.Names, s.name) {
			c.Names = append(c.Names, s.name)
		}
	}
	switch {
	case len(c.Names) > 0 && c.Selector != "":
		return errors.New("specify node names or -l, not both")
	case len(c.Names) == 0 && strings.TrimSpace(c.Selector) == "":
		return errors.New("specify node names or -l")
	}
	if c.labels, err = labels.Parse(c.Selector); err != nil {
		return fmt.Errorf("invalid selector -l %q: %w", c.Selector, err)
	}
	return nil
}

// pick returns the nodes of the cluster that are chosen: named ones in the order of the
// arguments, others in their own.
//
// Errors: a name that no node has, with similar names; labels that no node has; for a verb that
// writes, labels of all nodes without --yes.
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
		return nil, fmt.Errorf("no node matches -l %s. See the labels with\n  kubectl get nodes --show-labels", c.Selector)
	case len(picked) == len(cluster) && c.writes && !c.Yes:
		return nil, fmt.Errorf("-l %s matches every node of the cluster (%d), so their pods would have no node left; add --yes to proceed", c.Selector, len(cluster))
	}
	return picked, nil
}

func named[N metav1.Object](names []string, cluster []N) ([]N, error) {
	known := make(map[string]N, len(cluster))
	for _, node := range cluster {
		known[node.GetName()] = node
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
		return nil, notFound("node", unknown, namesOf(cluster))
	}
	return picked, nil
}

func namesOf[N metav1.Object](objects []N) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = objects[i].GetName()
	}
	return names
}

// notFound is the error of names that no object of a kind has; it suggests similar names.
func notFound(kind string, unknown, all []string) error {
	words := make([]string, 0, min(len(unknown), maxNamed))
	for _, name := range unknown[:min(len(unknown), maxNamed)] {
		word := fmt.Sprintf("%q", name)
		if meant := near(name, all); len(meant) > 0 {
			word += " (did you mean " + phrase.Or(meant) + "?)"
		}
		words = append(words, word)
	}
	rest := ""
	if more := len(unknown) - len(words); more > 0 {
		rest = fmt.Sprintf(", and %d more", more)
	}
	return fmt.Errorf("%s not found: %s%s", kind, strings.Join(words, ", "), rest)
}

// nodes lists the metadata of all nodes.
func nodes(ctx context.Context, reached client.Client) ([]*metav1.PartialObjectMetadata, error) {
	return metadataList(ctx, reached, nodeKind)
}

// maxNear bounds the suggested names.
const maxNear = 3

// near returns the names with the smallest edit distance from the written one, at most three.
func near(written string, names []string) []string {
	// Such a name is invalid.
	if written == "" || len(written) > 253 {
		return nil
	}
	all := &cobra.Command{}
	for _, name := range names {
		if strings.EqualFold(name, written) {
			return []string{name}
		}
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for apart := range max(2, min(len(written)/3, 4)) {
		all.SuggestionsMinimumDistance = apart + 1
		if found := all.SuggestionsFor(written); len(found) > 0 {
			slices.Sort(found)
			return found[:min(len(found), maxNear)]
		}
	}
	return nil
}
