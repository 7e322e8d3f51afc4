package cli

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects per request.
const pageSize = 500

// listable are pointers to objects.
type listable interface {
	comparable
	client.Object
}

// pages lists objects page by page and keeps what slim returns of each, nothing if that is nil.
//
// Errors: those of the API server, beside the objects that were read before.
func pages[P listable](ctx context.Context, reached client.Client, list client.ObjectList, slim func(P) P, options ...client.ListOption) (all []P, err error) {
	for next := ""; ; {
		page, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return all, fmt.Errorf("%T is no list", list)
		}
		if err := reached.List(ctx, page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return all, err
		}
		if err := meta.EachListItem(page, keep(&all, slim)); err != nil {
			return all, err
		}
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

func keep[P listable](all *[]P, slim func(P) P) func(runtime.Object) error {
	return func(object runtime.Object) error {
		one, ok := object.(P)
		if !ok {
			return fmt.Errorf("the list has a %T", object)
		}
		var none P
		if slimmer := slim(one); slimmer != none {
			*all = append(*all, slimmer)
		}
		return nil
	}
}
