package eviction

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLanes(t *testing.T) {
	t.Parallel()
	awaited := map[string]bool{}
	l := newOwnerQueues(func(t item) bool { return awaited[t.pod.Name] })
	of := func(owner types.NamespacedName, pod string) item {
		return item{pod: types.NamespacedName{Namespace: "shop", Name: pod}, owner: owner}
	}
	empty := func() (order []string) {
		for l.Len() > 0 {
			order = append(order, l.Pop().pod.Name)
		}
		return order
	}
	for _, waiting := range []item{of(blue, "a"), of(blue, "b"), of(blue, "c"), of(green, "d"), of(green, "e")} {
		l.Push(waiting)
	}
	l.Touch(of(blue, "a"))
	expect(t, "owners in turn", empty(), "a", "d", "b", "e", "c")

	l.Push(of(blue, "a"))
	l.Push(of(green, "b"))
	l.Push(of(green, "c"))
	awaited["c"], awaited["d"], awaited["a"] = true, true, true
	l.Touch(of(green, "c"))
	l.Push(of(green, "d"))
	l.Touch(of(green, "d"))
	l.Touch(of(blue, "a"))
	expect(t, "those that others wait for, then the rest", empty(), "c", "d", "a", "b")
}
