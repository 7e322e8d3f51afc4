package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pool is a cluster of three web nodes, one of databases, and one without labels, by name.
func pool() (nodes []*metav1.PartialObjectMetadata) {
	for name, labels := range map[string]map[string]string{
		"web-1": {"pool": "web", "zone": "a"}, "web-2": {"pool": "web", "zone": "b"}, "web-3": {"pool": "web", "zone": "b"},
		"db-1": {"pool": "db", "zone": "a"}, "spare": nil,
	} {
		nodes = append(nodes, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	slices.SortFunc(nodes, func(a, b *metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func TestChoiceOfNodes(t *testing.T) {
	t.Parallel()
	many := make([]string, 13)
	for i := range many {
		many[i] = fmt.Sprintf("gone-%d", i)
	}
	for name, tt := range map[string]choosing{
		"by name":                      {args: []string{"web-2", "web-1"}, want: []string{"web-2", "web-1"}},
		"by kind and name":             {args: []string{"node/db-1", "NO/web-1", "nodes/web-2"}, want: []string{"db-1", "web-1", "web-2"}},
		"by kind and names":            {args: []string{"node", "db-1", "web-1"}, want: []string{"db-1", "web-1"}},
		"twice":                        {args: []string{"web-1", "node/web-1"}, want: []string{"web-1"}},
		"a node that is called node":   {args: []string{"node"}, wrong: `node not found: "node"`},
		"by labels":                    {selector: "pool=db", want: []string{"db-1"}},
		"by several labels":            {selector: "pool in (web),zone!=b", want: []string{"web-1"}},
		"all by name":                  {args: []string{"web-1", "web-2", "web-3", "db-1", "spare"}, want: []string{"web-1", "web-2", "web-3", "db-1", "spare"}},
		"all by labels, to look":       {selector: "pool!=x", reads: true, want: []string{"db-1", "spare", "web-1", "web-2", "web-3"}},
		"all by labels, and meant":     {selector: "pool!=x", yes: true, want: []string{"db-1", "spare", "web-1", "web-2", "web-3"}},
		"all by labels":                {selector: "pool!=x", wrong: "-l pool!=x matches every node of the cluster (5), so their pods would have no node left; add --yes to proceed"},
		"none by labels":               {selector: "pool=wep", wrong: "no node matches -l pool=wep. See the labels with\n  kubectl get nodes --show-labels"},
		"labels that are none":         {selector: "pool=a=b", wrong: `invalid selector -l "pool=a=b": found '=', expected: ',' or 'end of string'`},
		"nothing":                      {wrong: "specify node names or -l"},
		"an empty word":                {args: []string{""}, wrong: `invalid argument "": use NAME or node/NAME`},
		"blank labels":                 {selector: " ", wrong: "specify node names or -l"},
		"both":                         {args: []string{"web-1"}, selector: "pool=web", wrong: "specify node names or -l, not both"},
		"another kind":                 {args: []string{"pod/web-1"}, wrong: `invalid argument "pod/web-1": use NAME or node/NAME`},
		"a kind without a name":        {args: []string{"node/"}, wrong: `invalid argument "node/": use NAME or node/NAME`},
		"a path":                       {args: []string{"node/web-1/status"}, wrong: `invalid argument "node/web-1/status": use NAME or node/NAME`},
		"a name that is near others":   {args: []string{"web-1", "wbe-2"}, wrong: `node not found: "wbe-2" (did you mean web-2?)`},
		"one that is near several":     {args: []string{"web-7"}, wrong: `node not found: "web-7" (did you mean web-1, web-2 or web-3?)`},
		"several that are not there":   {args: []string{"lost", "web-1", "bd-1"}, wrong: `node not found: "lost", "bd-1" (did you mean db-1?)`},
		"more than a line would hold":  {args: many, wrong: `node not found: "gone-0", "gone-1", "gone-2", "gone-3", "gone-4", "gone-5", "gone-6", "gone-7", "gone-8", "gone-9", and 3 more`},
		"a name that spoils terminals": {args: []string{"\x1b[2Jweb-1"}, wrong: `node not found: "\x1b[2Jweb-1"`},
	} {
		t.Run(name, tt.run)
	}
}

// choosing is one choice, and the nodes that it means or what is wrong with it.
type choosing struct {
	args     []string
	selector string
	reads    bool
	yes      bool
	want     []string
	wrong    string
}

func (tt choosing) run(t *testing.T) {
	t.Parallel()
	c := &choice{Selector: tt.selector, Yes: tt.yes, writes: !tt.reads}
	var picked []*metav1.PartialObjectMetadata
	subjects, err := subjectsOf(tt.args, kindAny, kindNode)
	if err == nil {
		err = c.complete(subjects)
	}
	if err == nil {
		picked, err = pick(c, pool())
	}
	var got []string
	for _, node := range picked {
		got = append(got, node.Name)
	}
	if diff := cmp.Diff(tt.want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != tt.wrong {
		t.Errorf("error %q, want %q", said, tt.wrong)
	}
}
