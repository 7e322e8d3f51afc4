package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/patience"
)

// Follower sees every change of some objects, in the order in which the API
// server made them. A watch that breaks goes on where it was.
type Follower struct {
	client  client.WithWatch
	list    client.ObjectList
	options []client.ListOption
	see     func(watch.EventType, client.Object)
	changes *watchtools.RetryWatcher
	until   chan string // the version to have seen at the end
	ended   chan error
}

// Follow shows see, in a goroutine of its own, every change since the list was
// read with the same options.
func (c *Cluster) Follow(t testing.TB, list client.ObjectList, see func(watch.EventType, client.Object), options ...client.ListOption) *Follower {
	t.Helper()
	f := &Follower{
		client: c.Client, list: list, options: options, see: see,
		until: make(chan string, 1), ended: make(chan error, 1),
	}
	var err error
	f.changes, err = watchtools.NewRetryWatcherWithContext(context.WithoutCancel(t.Context()), list.GetResourceVersion(), f)
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	t.Cleanup(f.changes.Stop)
	go func() { f.ended <- f.run(list.GetResourceVersion()) }()
	return f
}

// WatchWithContext opens the watch; it is for the one who resumes it.
func (f *Follower) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list := f.list.DeepCopyObject().(client.ObjectList)
	return f.client.Watch(ctx, list, slices.Concat(f.options, []client.ListOption{&client.ListOptions{Raw: &options}})...)
}

// Stop ends the watch as soon as it has seen everything that had happened when
// Stop was called. After that, see is not called again. The test fails if
// changes may have been missed.
func (f *Follower) Stop(t testing.TB) {
	t.Helper()
	defer f.changes.Stop()
	ctx, cancel := patience.Context(t)
	defer cancel()
	latest, err := f.latest(ctx)
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	f.until <- latest
	select {
	case err = <-f.ended:
	case <-ctx.Done():
		err = fmt.Errorf("version %s was not seen: %w", latest, ctx.Err())
	}
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
}

// latest is the version of the latest change of an object that exists.
func (f *Follower) latest(ctx context.Context) (string, error) {
	list := f.list.DeepCopyObject().(client.ObjectList)
	if err := f.client.List(ctx, list, f.options...); err != nil {
		return "", err
	}
	latest := "1"
	err := apimeta.EachListItem(list, func(item runtime.Object) error {
		version := item.(client.Object).GetResourceVersion()
		if seen(version, latest) {
			latest = version
		}
		return nil
	})
	return latest, err
}

func (f *Follower) run(version string) error {
	until := ""
	for until == "" || !seen(version, until) {
		select {
		case until = <-f.until:
		case event, open := <-f.changes.ResultChan():
			object, ok := event.Object.(client.Object)
			if !open || !ok {
				return fmt.Errorf("changes after version %s are lost: %+v", version, event.Object)
			}
			f.see(event.Type, object)
			version = object.GetResourceVersion()
		}
	}
	return nil
}

// seen says whether who has seen a version has seen another. A version that is
// no number has seen nothing.
func seen(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
