package cli

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// suggestion completes words by the names of objects. Errors are silent, as they would spoil the
// line that is being typed.
type suggestion struct {
	resource schema.GroupVersionResource
	// prefix comes before a name, such as "pdb/".
	prefix     string
	namespaced bool
}

var (
	suggestNodes        = suggestion{resource: corev1.SchemeGroupVersion.WithResource("nodes")}
	suggestPods         = suggestion{resource: corev1.SchemeGroupVersion.WithResource("pods"), prefix: "pod/", namespaced: true}
	suggestBudgets      = suggestion{resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), prefix: "pdb/", namespaced: true}
	suggestMaintenances = suggestion{resource: v1alpha1.SchemeGroupVersion.WithResource("nodemaintenances")}
	suggestRollouts     = suggestion{resource: v1alpha1.SchemeGroupVersion.WithResource("noderollouts")}
)

// under returns the suggestion with another prefix.
func (s suggestion) under(prefix string) suggestion {
	s.prefix = prefix
	return s
}

// suggest completes an argument by names that begin with the written text and are not an argument
// yet.
func (c *connection) suggest(of ...suggestion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), suggestWithin)
		defer cancel()
		reached, namespace, err := c.metadata()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, s := range of {
			words = append(words, s.words(ctx, reached, namespace)...)
		}
		words = slices.DeleteFunc(words, func(word string) bool {
			return !strings.HasPrefix(word, written) || slices.Contains(args, word)
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// metadata returns a client that reads nothing but metadata.
func (c *connection) metadata() (reached metadata.Interface, namespace string, err error) {
	config, _, namespace, err := c.config(io.Discard)
	if err != nil {
		return nil, "", err
	}
	reached, err = metadata.NewForConfig(config)
	return reached, namespace, err
}

// suggestLabels completes --selector by the labels of the first nodes.
func (c *connection) suggestLabels(cmd *cobra.Command, _ []string, written string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), suggestWithin)
	defer cancel()
	reached, _, err := c.metadata()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := reached.Resource(suggestNodes.resource).List(ctx, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words, open := labelWords(written, list.Items)
	if open {
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// maxLabels bounds the suggested labels, as each node has a host name.
const maxLabels = 100

// lastRequirement matches the text before the last requirement of a selector, its key, operator
// and value.
var lastRequirement = regexp.MustCompile(`^(.*,)?([^,=!]*)(?:(==|=|!=)([^,=!]*))?$`)

// labelWords completes the last requirement of a selector by a value, or by a key; it is then
// open, as a value follows.
func labelWords(written string, nodes []metav1.PartialObjectMetadata) (words []string, open bool) {
	parts := lastRequirement.FindStringSubmatch(written)
	if inSet := strings.LastIndex(written, "(") > strings.LastIndex(written, ")"); parts == nil || inSet {
		return nil, false
	}
	before, key, operator, value := parts[1], parts[2], parts[3], parts[4]
	for i := range nodes {
		for name, has := range nodes[i].Labels {
			switch {
			case operator == "" && strings.HasPrefix(name, key):
				words = append(words, before+name+"=")
			case operator != "" && name == key && strings.HasPrefix(has, value):
				words = append(words, before+key+operator+has)
			}
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxLabels)], operator == ""
}

// words returns the first names.
func (s suggestion) words(ctx context.Context, reached metadata.Interface, namespace string) (words []string) {
	objects := metadata.ResourceInterface(reached.Resource(s.resource))
	if s.namespaced {
		objects = reached.Resource(s.resource).Namespace(namespace)
	}
	list, err := objects.List(ctx, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		words = append(words, s.prefix+list.Items[i].Name)
	}
	return words
}
