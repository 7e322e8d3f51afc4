package webhook

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// crowd asks a handler that does not answer requests named held before they are let go.
type crowd struct {
	t       *testing.T
	held    chan struct{}
	handler limited
}

func newCrowd(t *testing.T, limit *namespaceLimit) crowd {
	t.Helper()
	held := make(chan struct{})
	return crowd{t, held, limited{admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		if request.Name == "held" {
			<-held
		}
		return admission.Allowed("")
	}), limit, wait}}
}

// ask asks for an answer within a second.
func (c crowd) ask(namespace, name string) chan admission.Response {
	answer := make(chan admission.Response, 1)
	go func() {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		answer <- c.handler.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: namespace, Name: name}})
	}()
	synctest.Wait()
	return answer
}

// wants compares an answer that is there by now with why it is refused; empty admits.
func (c crowd) wants(answer chan admission.Response, whose, refused string) {
	c.t.Helper()
	synctest.Wait()
	if len(answer) == 0 {
		c.t.Errorf("%s is not answered", whose)
		return
	}
	if said := <-answer; said.Allowed != (refused == "") || !said.Allowed && said.Result.Message != refused {
		c.t.Errorf("%s is answered %+v, want %q", whose, said.Result, refused)
	}
}

// Requests wait for their turn, as long as their caller does; those of a namespace wait for
// one another only.
func TestANamespaceTakesNoTurnsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, newNamespaceLimit(2, 3))
		c.ask("attacked", "held")
		c.ask("attacked", "held")
		first := c.ask("attacked", "web")
		c.wants(c.ask("shop", "web"), "another namespace", "")
		time.Sleep(500 * time.Millisecond)
		last := c.ask("attacked", "web")
		time.Sleep(500 * time.Millisecond)
		c.wants(first, "who has waited for a second", "too many concurrent admission requests, try again")
		close(c.held)
		c.wants(last, "who has waited for half a second", "")
		if left := len(c.handler.limit.queues); left != 0 {
			t.Errorf("%d namespaces are remembered that nobody asks for", left)
		}
	})
}

// With an attacker in each turn another namespace is the next: nobody has more than their
// share of the queue.
func TestANamespaceIsNextBeforeTheQueueOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNamespaceLimit(1, 1)
		done, err := all.take(t.Context(), "attacked")
		must(t, err)
		var order []string
		next := func(namespace string) {
			go func() {
				done, err := all.take(t.Context(), namespace)
				must(t, err)
				order = append(order, namespace)
				done()
			}()
			synctest.Wait()
		}
		for range 10 {
			next("attacked")
		}
		next("shop")
		done()
		synctest.Wait()
		if len(order) != 11 || order[0] != "shop" {
			t.Errorf("the order is %v, want shop first", order)
		}
	})
}
