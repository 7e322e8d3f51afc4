package surge_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/surge"
)

// led has a Service lead to some pods for so long.
func led(service string, since time.Duration, numbers ...int) func(*scene) {
	return func(s *scene) {
		if s.Endpoints == nil {
			s.Endpoints = map[types.UID][]surge.Endpoint{}
		}
		for _, number := range numbers {
			route := surge.Route{Service: service, AddressType: discoveryv1.AddressTypeIPv4}
			s.Endpoints[s.Pods[number].UID] = append(s.Endpoints[s.Pods[number].UID], surge.Endpoint{Route: route, For: since})
		}
	}
}

// labelled gives a pod a label of its own.
func labelled(number int, key, value string) func(*scene) {
	return func(s *scene) {
		s.Pods[number].Labels = maps.Clone(s.Pods[number].Labels)
		s.Pods[number].Labels[key] = value
	}
}

const replaced = "complete (completed)"

// A pod that is ready replaces another one when requests reach it: when every Service
// that leads to the other has led to this one for a second.
func TestANewcomerServesWhenServicesLeadToIt(t *testing.T) {
	t.Parallel()
	surging := func() *scene { return web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(silent) }
	for name, test := range map[string]struct {
		scene *scene
		want  []string
	}{
		"no Service leads to anybody": {surging(), []string{replaced}},
		"to both for long":            {surging().with(led("web", time.Minute, 0)).with(led("web", time.Second, 1)), []string{replaced}},
		"to the newcomer for a moment": {surging().with(led("web", time.Minute, 0)).with(led("web", 300*time.Millisecond, 1)), []string{
			"report", "again in 700ms",
		}},
		"not to the newcomer": {surging().with(led("web", time.Minute, 0)), []string{
			"report", "again in 5m0s",
		}},
		"by one Service of two": {surging().with(led("web", time.Minute, 0, 1)).with(led("canary", time.Minute, 0)), []string{
			"report", "again in 5m0s",
		}},
		"only to the newcomer": {surging().with(led("web", 0, 1)), []string{replaced}},
		"to the leader only, whose label the newcomer has not": {
			surging().with(led("leader", time.Minute, 0)).with(labelled(0, "role", "leader")), []string{replaced},
		},
		"to pods with fewer labels": {surging().with(led("web", time.Minute, 0)).with(labelled(1, "version", "2")), []string{
			"report", "again in 5m0s",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, summary(t, surge.Decide(test.scene.Snapshot))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// A Service that never leads to the newcomer is waited for no longer than a replacement
// is, and the pod does not go back: that could cost both.
func TestAServiceThatLeadsNowhereEndsNoDrain(t *testing.T) {
	t.Parallel()
	want := []string{"complete +NotSurged (gaveup)"}
	got := summary(t, surge.Decide(web(1).evacuated(0).detached(0, time.Hour).newcomer(true).with(led("web", time.Hour, 0)).Snapshot))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

// Whoever gives each pod a label of its own does not have a decision compare each with
// each: behind the first few, nobody waits for a Service.
func TestFewSetsOfLabelsAreDistinguished(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]string{"7": "report", "8": "complete (completed)"} {
		s := web(9)
		for number := range 9 {
			s.evacuated(number).detached(number, time.Hour-time.Duration(number)*time.Minute).with(labelled(number, "pod", strconv.Itoa(number)))
			s.with(led("web", time.Minute, number))
		}
		s.with(silent).with(func(s *scene) { s.Deployment.Spec.ProgressDeadlineSeconds = new(int32(7200)) })
		for number := range 9 {
			s.newcomer(true).with(labelled(9+number, "pod", of))
		}
		if got := summary(t, surge.Decide(s.Snapshot))[0]; !strings.HasPrefix(got, want) {
			t.Errorf("newcomers with the labels of pod %s: %s, want %s", of, got, want)
		}
	}
}

// silent has nobody heard of us for a while.
func silent(s *scene) {
	for _, e := range s.Evacuations {
		e.Status.EvacuationProgressTimestamp = new(ago(time.Minute))
	}
}
