package kube_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ebbtide.dev/ebbtide/internal/kube"
)

func TestAWriteOnOldStateIsNoFailure(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	for name, test := range map[string]struct {
		err     error
		failure bool
	}{
		"it has changed":      {err: apierrors.NewConflict(pods, "web", errors.New("modified"))},
		"it is gone":          {err: apierrors.NewNotFound(pods, "web")},
		"it is forbidden":     {err: apierrors.NewForbidden(pods, "web", errors.New("no")), failure: true},
		"it exists already":   {err: apierrors.NewAlreadyExists(pods, "web"), failure: true},
		"nobody has answered": {err: errors.New("connection refused"), failure: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("change pod web: %w", test.err)
			if got := kube.WithoutStale(t.Context(), err); (got != nil) != test.failure || got != nil && !errors.Is(got, test.err) {
				t.Errorf("left is %v, want a failure: %v", got, test.failure)
			}
		})
	}
	if err := kube.WithoutStale(t.Context(), nil); err != nil {
		t.Errorf("a success becomes %v", err)
	}
}
