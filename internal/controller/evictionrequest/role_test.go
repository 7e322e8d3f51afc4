package evictionrequest_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/controller/evictionrequest"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// For how long responders may be judged begins when Ebbtide becomes the controller, and again
// when the API server did not answer.
func TestARoleKnowsSinceWhenItActs(t *testing.T) {
	t.Parallel()
	served := core.Situation{Served: true}
	for name, tc := range map[string]struct {
		mode   core.Mode
		before func(*core.Situation)
		anew   bool
	}{
		"it was the controller":                     {core.ModeAuto, func(*core.Situation) {}, false},
		"somebody else was":                         {core.ModeAuto, func(s *core.Situation) { s.Holder = "another" }, true},
		"nobody knew":                               {core.ModeAuto, func(s *core.Situation) { s.Unknown = "no answer" }, true},
		"the API was not served":                    {core.ModeController, func(s *core.Situation) { s.Served = false }, true},
		"it always is, and the API server was away": {core.ModeController, func(s *core.Situation) { s.Unknown = "no answer" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			situation := served
			situation.Mode = tc.mode
			r := evictionrequest.NewIdleRole(tc.mode)
			r.Become(t.Context(), situation)
			began, before := r.Since(), situation
			tc.before(&before)
			if time.Since(began) < 0 || began.IsZero() {
				t.Fatalf("it acts since %s", began)
			}
			r.Become(t.Context(), before)
			r.Become(t.Context(), situation)
			if anew := r.Since().After(began); !r.Acts() || anew != tc.anew {
				t.Errorf("it acts: %t, since %s after %s, want that anew: %t", r.Acts(), r.Since(), began, tc.anew)
			}
		})
	}
}
