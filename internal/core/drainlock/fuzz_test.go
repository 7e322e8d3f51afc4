package drainlock_test

import (
	"encoding/json"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

// FuzzDecide has people write whatever they like into a record, a lock and the
// mutex. It comes to rest without a panic.
func FuzzDecide(f *testing.F) {
	for _, record := range []string{
		`{}`, `{"metadata":{"name":"node-1"}}`, `{"metadata":{"name":"node-1"},"spec":{"complete":true}}`,
		`{"metadata":{"name":"node-1"},"spec":{"budgets":[{"namespace":"shop","name":"web"},{"namespace":"shop","name":"db"},{"namespace":"shop","name":"db"},{}]}}`,
		`{"metadata":{"name":"node-1"},"spec":{"budgets":[{"namespace":"shop","name":"db"}],"inPlace":{"lockTimeoutSeconds":-1,"expectedDowntimeSeconds":2147483647,"onLockTimeout":"Delete"}},
			"status":{"waitingSince":"0001-01-01T00:00:00Z","locks":[{"namespace":"shop","name":"db","acquiredTime":"9999-01-01T00:00:00Z"},{"name":"x"}],"givenUp":[{"namespace":"shop","name":"web","action":"Delete","pods":[{"uid":"db-0"}]}]}}`,
	} {
		for _, lock := range []string{
			"", "{", `{"holder":"nodemaintenance/kernel/node-1","expiresAt":"2026-11-21T09:00:00Z"}`,
			`{"holder":"nodemaintenance//","acquiredAt":"0001-01-01T00:00:00Z","renewedAt":"9999-01-01T00:00:00Z","expiresAt":"9999-12-31T23:59:59Z"}`,
		} {
			f.Add(record, lock, "kernel/node-1", int64(0), int64(0))
		}
	}
	f.Fuzz(func(t *testing.T, record, lock, mutex string, seconds, longest int64) {
		s := snapshot(mutexOf(mutex, float64(seconds%1e9)), annotated("db", lock))
		r := &v1alpha1.DrainRecord{}
		if json.Unmarshal([]byte(record), r) != nil || r.Name == "" {
			return
		}
		s.Record, s.Longest, s.MutexRecord = r, time.Duration(longest), r
		s.Live = drainlock.NeedsLive(r, s.Now)
		drainlock.Blockers(drainlock.Facts{Now: s.Now, Record: r, Pods: s.Pods, Budgets: s.Budgets})
		drainlock.Waiting(drainlock.Facts{Record: r})
		for range 20 {
			if !stir(&s) {
				return
			}
		}
		t.Errorf("it is never at rest: %v", drainlock.Decide(s))
	})
}

func stir(s *drainlock.Snapshot) bool {
	d := drainlock.Decide(*s)
	s.Record = s.Record.DeepCopy()
	if d.Status != nil {
		s.Record.Status = *d.Status
	}
	switch d.Step.Kind {
	case drainlock.TakeMutex, drainlock.GiveMutex:
		s.Mutex = d.Step.Mutex
	case drainlock.WriteLock, drainlock.RemoveLock:
		changed := d.Step.Budget.DeepCopy()
		annotation(changed.Name, d.Step.Lock)(&drainlock.Snapshot{Budgets: []*policyv1.PodDisruptionBudget{changed}})
		for i, b := range s.Budgets {
			if b.Name == changed.Name {
				s.Budgets[i] = changed
			}
		}
	case drainlock.WritePromise, drainlock.RemovePromise:
		promises(d.Step)(s)
	case drainlock.DeletePod:
		for i, pod := range s.Pods {
			if pod.UID == d.Step.Pod.UID {
				s.Pods = append(s.Pods[:i:i], s.Pods[i+1:]...)
				break
			}
		}
	case drainlock.Finish:
		return false
	}
	return d.Status != nil || d.Step.Kind != ""
}

// FuzzKeep has people write whatever they like into a lock.
func FuzzKeep(f *testing.F) {
	for _, lock := range []string{"", "{", `{"holder":"nodemaintenance//","expiresAt":"9999-12-31T23:59:59Z"}`, `{"holder":" x","expiresAt":"2026-11-21T09:00:00Z"}`} {
		f.Add(lock, int64(0))
	}
	f.Fuzz(func(t *testing.T, lock string, longest int64) {
		b := snapshot(annotated("db", lock)).Budgets[0]
		for _, of := range []string{"", "node-1"} {
			k := drainlock.Keep(b, of, began, time.Duration(longest))
			if k.RequeueAfter < 0 || k.Remove && (len(k.Events) != 1 || k.RequeueAfter != 0) || k.Stray && !k.Remove {
				t.Errorf("Keep = %+v", k)
			}
		}
	})
}
