package lab

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changes is a watch that goes on at once where the API server has ended it. It
// does that to whoever is slow to read, as everybody is on a machine that is busy.
type changes struct {
	client  client.WithWatch
	list    client.ObjectList
	options []client.ListOption
	// version is that of the last change, and watch brings those after it.
	version string
	watch   watch.Interface
}

// watch fills the list and begins to watch what changes after that.
func (l *Lab) watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (*changes, error) {
	if err := l.Client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	c := &changes{client: l.Client, list: list, options: options, version: list.GetResourceVersion()}
	return c, c.resume(ctx)
}

func (c *changes) resume(ctx context.Context) (err error) {
	options := []client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: c.version}}}
	if c.watch, err = c.client.Watch(ctx, c.list, append(options, c.options...)...); err != nil {
		return fmt.Errorf("watch %T: %w", c.list, err)
	}
	return nil
}

// next waits for the next change.
func (c *changes) next(ctx context.Context) (watch.Event, error) {
	for {
		select {
		case <-ctx.Done():
			return watch.Event{}, ctx.Err()
		case event, open := <-c.watch.ResultChan():
			if open {
				return event, c.see(event)
			}
		}
		if err := c.resume(ctx); err != nil {
			return watch.Event{}, err
		}
	}
}

func (c *changes) see(event watch.Event) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watch %T: %w", c.list, apierrors.FromObject(event.Object))
	}
	if object, ok := event.Object.(client.Object); ok {
		c.version = object.GetResourceVersion()
	}
	return nil
}

func (c *changes) stop() { c.watch.Stop() }
