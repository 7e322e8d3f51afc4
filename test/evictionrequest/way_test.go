package evictionrequest

import (
	"strings"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// awaitMessage waits until the default evictor says something.
func (w *world) awaitMessage(eviction, words string) {
	w.t.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: eviction}}
	w.eventually("the evictor to say "+words, func() (bool, any) {
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		own := core.ResponderOf(&e.Status, evictor)
		if own == nil || own.Message == nil {
			return false, own
		}
		return strings.Contains(*own.Message, words), *own.Message
	})
}
