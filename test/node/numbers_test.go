package node

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// audited is a real node in a cluster that writes down who writes what.
var audited = cluster.Spec{RealNodes: 1, Audit: true}

// BenchmarkStaticPod has the manager drain a real node with a static pod, and give it back:
// how long after the agent's turn the program gets SIGTERM, and how long after Complete it
// serves again.
func BenchmarkStaticPod(b *testing.B) {
	s := newStatics(b, audited)
	s.StartManager(b)
	var toEnd, toServe spread
	n := 0
	for b.Loop() {
		n++
		// A kubelet looks once a second at a pod that it has just started.
		time.Sleep(5 * time.Second)
		turn := s.turn(b)
		m := s.drain(b, fmt.Sprint("number-", n))
		ends := s.diary.notes(b, "asked to end")
		toEnd.add(ends[len(ends)-1].at.Sub(<-turn))
		begin := time.Now()
		s.giveBack(b, m)
		starts := s.diary.notes(b, "serving")
		toServe.add(starts[len(starts)-1].at.Sub(begin))
		if len(ends) != n || len(starts) != n+1 {
			b.Fatalf("after %d drains the program was asked to end %d times, and started %d times", n, len(ends), len(starts))
		}
		if err := s.Client.Delete(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // most of it is what the program takes to end
	toEnd.report(b, "SIGTERM")
	toServe.report(b, "serving")
}

// turn tells when it is the agent's turn to end the pod.
func (s *statics) turn(t testing.TB) <-chan time.Time {
	t.Helper()
	list := &v1alpha1.EvacuationList{}
	if err := s.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	turn := make(chan time.Time, 1)
	s.Follow(t, list, func(_ watch.EventType, object client.Object) {
		if e, is := object.(*v1alpha1.Evacuation); is && e.Status.ActiveEvacuatorClass == v1alpha1.KubeletEvacuatorClass {
			select {
			case turn <- time.Now():
			default: // It was before.
			}
		}
	})
	return turn
}

// spread is how long something has taken.
type spread struct {
	sum, most time.Duration
	n         int
}

func (s *spread) add(d time.Duration) {
	s.sum, s.most, s.n = s.sum+d, max(s.most, d), s.n+1
}

func (s *spread) report(b *testing.B, what string) {
	b.ReportMetric(float64((s.sum / time.Duration(s.n)).Milliseconds()), "ms-to-"+what)
	b.ReportMetric(float64(s.most.Milliseconds()), "ms-to-"+what+"-at-most")
}

var idle = flag.Duration("idle", time.Minute, "for how long BenchmarkIdleAgent looks at an agent that has nothing to do")

// BenchmarkIdleAgent looks at an agent that has nothing to do: what it has in memory, how
// much of a processor it takes, and what it writes to the API.
func BenchmarkIdleAgent(b *testing.B) {
	s := newStatics(b, audited)
	// It writes that it is there, and sees what it has caused.
	time.Sleep(10 * time.Second)
	process := s.agentProcess(b)
	for b.Loop() {
		wrote, used := s.writes(b), process.processor(b)
		time.Sleep(*idle)
		hours := idle.Hours()
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(s.writes(b)-wrote)/hours, "writes/h")
		b.ReportMetric(100*(process.processor(b)-used).Seconds()/idle.Seconds(), "%cpu")
		b.ReportMetric(process.memory(b, "VmRSS"), "MiB")
		b.ReportMetric(process.memory(b, "RssAnon"), "MiB-own")
	}
}

// writes is how many requests of the agent that change something the API server has seen.
func (s *statics) writes(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile(s.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	count := bytes.Count(data, []byte(`"username":"system:serviceaccount:default:agent"`))
	if count == 0 {
		t.Fatal("the audit log does not have the first write of the agent")
	}
	return count
}

// proc is the folder of a process.
type proc string

// agentProcess is that of the agent.
func (s *statics) agentProcess(t testing.TB) proc {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if text, _ := os.ReadFile(line); strings.Contains(string(text), "--state-dir="+s.state) {
			return proc(filepath.Dir(line))
		}
	}
	t.Fatal("there is no agent")
	return ""
}

// memory is a number of its status, in MiB.
func (p proc) memory(t testing.TB, key string) float64 {
	t.Helper()
	data, err := os.ReadFile(string(p) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), key+":")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// processor is how long its threads have run, for themselves and in the kernel.
func (p proc) processor(t testing.TB) (sum time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(string(p) + "/task/*/schedstat")
	if err != nil || len(threads) == 0 {
		t.Fatalf("%s has no threads: %v", p, err)
	}
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
