package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// slowAPI is an API server in memory whose lists of a namespace wait.
type slowAPI struct {
	client.WithWatch
	// answer lets one list of namespace attacked be answered.
	answer chan struct{}

	mu sync.Mutex
	// lists are those of all namespaces, under how many of attacked at a time.
	lists, under, most int
}

func newSlowAPI(t *testing.T, objects ...client.Object) *slowAPI {
	t.Helper()
	api := &slowAPI{answer: make(chan struct{})}
	api.WithWatch = interceptor.NewClient(fault.NewServer(t, objects...).WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			// What is written while it waits is not in it.
			err := c.List(ctx, list, options...)
			if of := (&client.ListOptions{}).ApplyOptions(options); of.Namespace == "attacked" {
				api.count(1)
				defer api.count(-1)
				select {
				case <-api.answer:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return err
		},
	})
	return api
}

func (a *slowAPI) count(change int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.under += change
	a.lists += max(change, 0)
	a.most = max(a.most, a.under)
}

// evicts asks for a dry run of an eviction of pod web, as an API server does.
func evicts(t *testing.T, gate evictionGate, namespace string) chan admission.Response {
	t.Helper()
	answer := make(chan admission.Response, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		answer <- gate.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: namespace, Name: "web", DryRun: new(true), Object: runtime.RawExtension{Raw: []byte("{}")},
		}})
	}()
	synctest.Wait()
	return answer
}

// However many pods of a namespace are evicted at the same time, its budgets are in memory
// once. A namespace that the API server answers is not held up.
func TestEvictionsShareAReadOfTheBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t, sample.Pod("attacked", "web"), sample.Pod("shop", "web"), sample.LockedBudget("shop", time.Hour))
		gate := newEvictionGate(registry{cached: api, live: api}, api, api, Options{Now: trusted})
		var attack []chan admission.Response
		for range 48 {
			attack = append(attack, evicts(t, gate, "attacked"))
		}
		if answer := evicts(t, gate, "shop"); len(answer) == 0 {
			t.Error("an eviction in another namespace is not answered")
		} else if said := <-answer; said.Allowed || !strings.Contains(said.Result.Message, "is locked by dba@example.com") {
			t.Errorf("an eviction of a locked pod is answered %+v", said.Result)
		}
		api.answer <- struct{}{}
		api.answer <- struct{}{}
		for _, one := range attack {
			if answer := <-one; !answer.Allowed {
				t.Errorf("an eviction in the namespace is answered %+v", answer.Result)
			}
		}
		if api.lists != 2 || api.most != 1 {
			t.Errorf("the budgets were read %d times, and %d at a time; want 2 and 1", api.lists, api.most)
		}
	})
}

// Who has taken a lock and evicts then does not share a read that began before.
func TestALockCountsWhileAReadIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t, sample.Pod("attacked", "web"))
		gate := newEvictionGate(registry{cached: api, live: api}, api, api, Options{Now: trusted})
		before := evicts(t, gate, "attacked")
		must(t, api.Create(t.Context(), sample.LockedBudget("attacked", time.Hour)))
		after := evicts(t, gate, "attacked")
		api.answer <- struct{}{}
		api.answer <- struct{}{}
		if answer := <-before; !answer.Allowed {
			t.Errorf("an eviction before the lock is answered %+v", answer.Result)
		}
		if answer := <-after; answer.Allowed || !strings.Contains(answer.Result.Message, "is locked by dba@example.com") {
			t.Errorf("an eviction after the lock: allowed %v, answer %+v; want it to wait", answer.Allowed, answer.Result)
		}
	})
}

// Load is no reason to let an eviction through.
func TestAnEvictionWaitsIfBudgetsAreNotReadInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t, sample.Pod("attacked", "web"))
		gate := newEvictionGate(registry{cached: api, live: api}, api, api, Options{Now: trusted})
		first, second := evicts(t, gate, "attacked"), evicts(t, gate, "attacked")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		const want = "cannot read the PodDisruptionBudgets and evacuators of pod web, try again: list poddisruptionbudgets: context deadline exceeded"
		for _, one := range []chan admission.Response{first, second} {
			if answer := <-one; answer.Allowed || answer.Result.Code != http.StatusTooManyRequests || answer.Result.Message != want {
				t.Errorf("allowed %v, answer %+v; want 429 and %q", answer.Allowed, answer.Result, want)
			}
		}
		if api.under != 0 {
			t.Errorf("%d reads go on for nobody", api.under)
		}
	})
}

// answering is a connection to an API server that says this.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte(a)))}, nil
}

func TestAnAnswerOfTheAPIServerIsReadUpToABound(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{8 << 20: "admitted", 8<<20 + 1: "http: request body too large"} {
		response, err := boundedTransport{answering(strings.Repeat("u", size))}.RoundTrip(nil)
		must(t, err)
		read, err := io.ReadAll(response.Body)
		if got := errorText(err); got != want || len(read) > 8<<20 {
			t.Errorf("of %d bytes %d were read, error %q; want %q", size, len(read), got, want)
		}
		must(t, response.Body.Close())
	}
}
