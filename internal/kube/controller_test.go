package kube

import (
	"testing"
	"time"
)

func TestAControllerThatFailsIsTriedAgainWithinAMinute(t *testing.T) {
	retries := Controller[string]{}.options().RateLimiter
	var last time.Duration
	for range 100 {
		last = retries.When("one")
	}
	if last != time.Minute {
		t.Errorf("after many failures the next try is due after %s, want a minute", last)
	}
}
