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
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

var many = flag.Int("requests", 300, "EvictionRequests that are made at once")

const (
	// within is for 5,000 of them.
	within = 60 * time.Second
	// mostMemory is what the manager may take, in bytes.
	mostMemory = 200 << 20
	// mostWrites is for each pod.
	mostWrites = 7
)

// Many requests at once are all answered and all pods evicted, by few writes, of which the
// API server refuses none.
func TestManyRequestsAtOnce(t *testing.T) {
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, OnlyAPIServer: true, Replicas: true, Audit: true})
	manager := w.cluster.StartReplica(t)
	w.eventually("the manager to lead", func() (bool, any) { return manager.Leads(t), manager.Tail(1) })
	pods := make([]*corev1.Pod, *many)
	w.each(func(n int) error {
		pods[n] = w.newPod(fmt.Sprintf("web-%d", n))
		return w.client.Create(w.ctx, pods[n])
	})
	begin := time.Now()
	w.each(func(n int) error { return w.client.Create(w.ctx, newRequest("example.com/upgrade", pods[n])) })
	active := w.allOver(manager, begin)
	took := time.Since(begin)
	_, metrics := manager.Metrics(t, w.cluster.Config.BearerToken)
	memory := metric(t, metrics, "process_resident_memory_bytes")
	time.Sleep(time.Second)
	writes, refused := w.writes()
	perPod := float64(writes) / float64(*many)
	t.Logf("%d requests: all begun after %s, all over after %s, %d MiB, %.2f writes for each pod, %d refused", *many, active.Round(time.Millisecond), took.Round(time.Millisecond), int(memory)>>20, perPod, len(refused))
	if took > within || memory > mostMemory || perPod > mostWrites {
		t.Errorf("want at most %s, %d MiB, %d writes for each pod", within, mostMemory>>20, mostWrites)
	}
	for _, one := range refused {
		t.Errorf("the API server has refused %s", one)
	}
}

// allOver waits until all are evicted, and returns after what time all had begun.
func (w *world) allOver(manager cluster.Replica, begin time.Time) (begun time.Duration) {
	w.t.Helper()
	for deadline := begin.Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		active, done := w.count()
		if begun == 0 && active == *many {
			begun = time.Since(begin)
		}
		if done == *many {
			return begun
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d pods are evicted after 5 minutes:\n%s", done, *many, manager.Tail(20))
		}
	}
}

// count is how many Evictions have begun, and how many are over.
func (w *world) count() (active, done int) {
	w.t.Helper()
	list := &lifecyclev1alpha1.EvictionList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		if len(list.Items[i].Status.TargetResponders) > 0 {
			active++
		}
		if core.Final(&list.Items[i].Status) {
			done++
		}
	}
	return active, done
}

// each does something for every number, many at a time.
func (w *world) each(do func(n int) error) {
	w.t.Helper()
	var all sync.WaitGroup
	slots, failures := make(chan struct{}, 32), make(chan error, *many)
	for n := range *many {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			failures <- do(n)
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		w.must(err)
	}
}

func metric(t *testing.T, text, name string) float64 {
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

// writes are what the manager has written in the namespace, and what of it was refused as
// invalid.
func (w *world) writes() (count int, refused []string) {
	w.t.Helper()
	file, err := os.Open(w.cluster.AuditLog)
	w.must(err)
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        struct{ Namespace, Resource string }
			ResponseStatus   struct{ Code int }
		}
		w.must(json.Unmarshal(lines.Bytes(), &request))
		if request.User.Username != cluster.Account.User() || request.ObjectRef.Namespace != w.ns || strings.HasPrefix(request.ObjectRef.Resource, "event") {
			continue
		}
		switch code := request.ResponseStatus.Code; {
		case code < 300:
			count++
		case code == 422:
			refused = append(refused, request.Verb+" "+request.RequestURI)
		}
	}
	w.must(lines.Err())
	return count, refused
}
