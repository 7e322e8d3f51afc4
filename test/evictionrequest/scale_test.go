package evictionrequest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

var many = flag.Int("requests", 300, "EvictionRequests that are made at once")

const (
	// mostMemory is what the manager may take, in bytes.
	mostMemory = 200 << 20
	// mostWrites is for each pod.
	mostWrites = 10
)

// Many requests at once are all answered and all pods evicted, by few writes, of which the
// API server refuses none.
func TestLongManyRequestsAtOnce(t *testing.T) {
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, OnlyAPIServer: true, Replicas: true, Audit: true})
	manager := w.cluster.StartReplica(t)
	w.eventually("the manager to lead", func() (bool, any) { return manager.Leads(t), manager.Tail(1) })
	pods := make([]*corev1.Pod, *many)
	cluster.Each(w.t, *many, func(n int) error {
		pods[n] = w.newPod(fmt.Sprintf("web-%d", n))
		return w.client.Create(w.ctx, pods[n])
	})
	progress := w.follow()
	began := time.Now()
	cluster.Each(w.t, *many, func(n int) error { return w.client.Create(w.ctx, newRequest("example.com/upgrade", pods[n])) })
	begun, over := progress.wait(t, began, manager)
	_, metrics := manager.Metrics(t, w.cluster.Config.BearerToken)
	memory := metric(t, metrics, "process_resident_memory_bytes")
	time.Sleep(time.Second)
	writes, refused := w.writes()
	perPod := float64(writes) / float64(*many)
	t.Logf("%d requests: all begun after %s, all over after %s, %d MiB, %.2f writes for each pod, %d refused",
		*many, begun.Round(time.Millisecond), over.Round(time.Millisecond), int(memory)>>20, perPod, len(refused))
	if memory > mostMemory || perPod > mostWrites {
		t.Errorf("want at most %d MiB, %d writes for each pod", mostMemory>>20, mostWrites)
	}
	for _, one := range refused {
		t.Errorf("the API server has refused %s", one)
	}
}

// progress counts Evictions as they are seen to change: who lists them again and again
// keeps the API server busier than the manager does.
type progress struct {
	mu          sync.Mutex
	begun, over map[string]bool
}

func (w *world) follow() *progress {
	w.t.Helper()
	p := &progress{begun: map[string]bool{}, over: map[string]bool{}}
	list := &lifecyclev1alpha1.EvictionList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	w.cluster.Follow(w.t, list, func(_ watch.EventType, object client.Object) {
		e := object.(*lifecyclev1alpha1.Eviction)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(e.Status.TargetResponders) > 0 {
			p.begun[e.Name] = true
		}
		if core.Final(&e.Status) {
			p.over[e.Name] = true
		}
	}, client.InNamespace(w.ns))
	return p
}

func (p *progress) count() (begun, over int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.begun), len(p.over)
}

// wait waits until all are evicted, and returns after what time all had begun and were over.
func (p *progress) wait(t *testing.T, since time.Time, manager cluster.Replica) (begun, over time.Duration) {
	t.Helper()
	for deadline := since.Add(allOf); ; time.Sleep(20 * time.Millisecond) {
		active, done := p.count()
		if begun == 0 && active == *many {
			begun = time.Since(since)
		}
		if done == *many {
			return begun, time.Since(since)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pods are evicted after %s:\n%s", done, *many, allOf, manager.Tail(20))
		}
	}
}

func metric(t testing.TB, text, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// audited is a write of the manager, as the API server has logged it.
type audited struct {
	Verb, RequestURI         string
	User                     struct{ Username string }
	ObjectRef                struct{ Namespace, Resource, Name string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp metav1.MicroTime
}

// audited shows every write of the manager in the namespace.
func (w *world) audited(see func(audited)) {
	w.t.Helper()
	w.auditedAnywhere(func(one audited) {
		if one.ObjectRef.Namespace == w.ns {
			see(one)
		}
	})
}

// auditedAnywhere shows every write of the manager.
func (w *world) auditedAnywhere(see func(audited)) {
	w.t.Helper()
	file, err := os.Open(w.cluster.AuditLog)
	w.must(err)
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			// What has no end yet is just being written.
			return
		}
		var one audited
		w.must(json.Unmarshal(line, &one))
		if one.User.Username == cluster.Account.User() {
			see(one)
		}
	}
}

// writes are what the manager has written in the namespace, and what of it was refused as
// invalid.
func (w *world) writes() (count int, refused []string) {
	w.t.Helper()
	w.audited(func(one audited) {
		switch code := one.ResponseStatus.Code; {
		case strings.HasPrefix(one.ObjectRef.Resource, "event"):
		case code < 300:
			count++
		case code == 422:
			refused = append(refused, one.Verb+" "+one.RequestURI)
		}
	})
	return count, refused
}
