package kube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// blownUp is an API server with objects that are as large as may be, of which only a few
// fit into memory.
type blownUp struct{ client.Reader }

var blown = map[string]string{"blown": strings.Repeat("u", 200<<10)}

func (blownUp) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetAnnotations(blown)
	return nil
}

func (blownUp) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	if asked.Limit < 1 || asked.Limit > 20 || asked.Namespace != "shop" {
		return fmt.Errorf("a page of %d in namespace %q", asked.Limit, asked.Namespace)
	}
	begin := 0
	if asked.Continue != "" {
		if _, err := fmt.Sscan(asked.Continue, &begin); err != nil {
			return err
		}
	}
	var page []runtime.Object
	for n := begin; n < min(begin+int(asked.Limit), 50); n++ {
		var one client.Object = &corev1.Pod{}
		if _, rules := list.(*unstructured.UnstructuredList); rules {
			one = &unstructured.Unstructured{Object: map[string]any{"spec": "kept"}}
		}
		one.SetName(fmt.Sprintf("web-%d", n))
		one.SetAnnotations(blown)
		page = append(page, one)
	}
	if end := begin + int(asked.Limit); end < 50 {
		list.SetContinue(fmt.Sprint(end))
	}
	return apimeta.SetList(list, page)
}

func TestLiveReadsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	reader := kube.Live(blownUp{})
	var pods corev1.PodList
	if err := reader.List(t.Context(), &pods, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 50 || pods.Items[0].Name != "web-0" || pods.Items[49].Name != "web-49" {
		t.Errorf("%d pods, want web-0 to web-49", len(pods.Items))
	}
	if size := pods.Size(); size > 5<<10 {
		t.Errorf("the pods have %d bytes", size)
	}
	rules := &unstructured.UnstructuredList{}
	if err := reader.List(t.Context(), rules, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if n := len(rules.Items); n != 50 || rules.Items[49].GetName() != "web-49" || rules.Items[49].GetAnnotations() != nil || rules.Items[49].Object["spec"] != "kept" {
		t.Errorf("%d rules, the last %.99q; want 50 without annotations", n, rules.Items[49].Object)
	}
	var budget policyv1.PodDisruptionBudget
	if err := reader.Get(t.Context(), client.ObjectKey{}, &budget); err != nil || budget.Size() > 1<<10 {
		t.Errorf("the budget has %d bytes, error %v", budget.Size(), err)
	}
}
