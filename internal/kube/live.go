package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// livePage limits the unstripped objects in memory.
const livePage = 20

// Live returns a reader of the API server that lists by pages and strips pods and budgets like
// caches, and annotations of unstructured objects. It is not for a cache, which has no pages.
func Live(reader client.Reader) client.Reader { return live{reader} }

type live struct{ client.Reader }

// Get implements client.Reader.
func (l live) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, object, options...)
	if err == nil {
		stripLive(object)
	}
	return err
}

// List implements client.Reader. All pages are of the same revision.
func (l live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var all []runtime.Object
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		paged := append([]client.ListOption{client.Limit(livePage), client.Continue(next)}, options...)
		if err := l.Reader.List(ctx, page, paged...); err != nil {
			return err
		}
		err := apimeta.EachListItem(page, func(object runtime.Object) error {
			// Otherwise the kept object would keep its page in memory.
			one := object.DeepCopyObject()
			stripLive(one)
			all = append(all, one)
			return nil
		})
		if err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return apimeta.SetList(list, all)
		}
	}
}

func stripLive(object runtime.Object) {
	switch typed := object.(type) {
	case *corev1.Pod:
		*typed = *StripPod(typed)
	case *policyv1.PodDisruptionBudget:
		*typed = *StripBudget(typed)
	case *unstructured.Unstructured:
		typed.SetAnnotations(nil)
		typed.SetManagedFields(nil)
	}
}
