package evictionrequest

import (
	"strconv"
	"strings"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

const (
	maxName = 253
	// maxStem leaves room for "pod-", a number and "-".
	maxStem = maxName - len("pod-") - len("1000000-")
	// lastNumber is the highest accepted number: other clients may have written any.
	lastNumber = 999_999
)

// Stem returns the part of a pod's name in the names of its Evictions. Pods that share it are
// decided together.
func Stem(pod string) string { return pod[:min(len(pod), maxStem)] }

// nextName returns the name of the next Eviction of a pod, "pod-<n>-<pod>".
func nextName(pod string, evictions []*lifecyclev1alpha1.Eviction) string {
	highest, taken := 0, map[string]bool{}
	for _, e := range evictions {
		highest = max(highest, number(e.Name))
		taken[e.Name] = true
	}
	for n := highest + 1; ; n++ {
		name := "pod-" + strconv.Itoa(n) + "-" + pod
		name = strings.TrimRight(name[:min(len(name), maxName)], "-.")
		if !taken[name] {
			return name
		}
	}
}

// NameStem returns the Stem in the name of an Eviction; empty if it has none.
func NameStem(name string) string {
	rest, ours := strings.CutPrefix(name, "pod-")
	digits, pod, found := strings.Cut(rest, "-")
	if _, err := strconv.Atoi(digits); !ours || !found || err != nil {
		return ""
	}
	return Stem(pod)
}

func number(name string) int {
	rest, ours := strings.CutPrefix(name, "pod-")
	digits, _, found := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	if !ours || !found || err != nil || n < 0 || n > lastNumber {
		return 0
	}
	return n
}
