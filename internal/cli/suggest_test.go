package cli

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A selector is completed by the labels of nodes, one requirement after the other.
func TestLabelsAreCompleted(t *testing.T) {
	t.Parallel()
	var nodes []metav1.PartialObjectMetadata
	for _, node := range pool() {
		nodes = append(nodes, *node)
	}
	for written, want := range map[string]string{
		"":                "pool= zone= true",
		"zo":              "zone= true",
		"pool=":           "pool=db pool=web false",
		"pool==w":         "pool==web false",
		"pool=web,":       "pool=web,pool= pool=web,zone= true",
		"pool=web,zone!":  "false",
		"pool=web,zone!=": "pool=web,zone!=a pool=web,zone!=b false",
		"zone in (a,":     "false",
		"gone=":           "false",
	} {
		words, open := labelWords(written, nodes)
		if got := strings.TrimSpace(fmt.Sprint(strings.Join(words, " "), " ", open)); got != want {
			t.Errorf("%q is completed by %s, want %s", written, got, want)
		}
	}
	for i := range 500 {
		nodes = append(nodes, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"host": fmt.Sprint(i)}}})
	}
	if words, _ := labelWords("host=", nodes); len(words) != maxLabels {
		t.Errorf("%d labels are suggested", len(words))
	}
}
