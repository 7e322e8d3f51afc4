package cluster

import (
	"context"
	"net/http"
	"testing"

	"ebbtide.dev/ebbtide/test/patience"
)

// PowerOff cuts the power of a real node: everything on it ends at once, and Kubernetes is
// not told. The power is on again when the test has ended.
func (c *Cluster) PowerOff(t testing.TB, node string) {
	t.Helper()
	if err := c.plane.PowerOff(node); err != nil {
		t.Fatal(err)
	}
	c.undo(t, func(ctx context.Context) {
		if c.plane.IsOn(node) {
			return
		}
		if err := c.plane.PowerOn(ctx, node); err != nil {
			t.Error(err)
		}
	})
}

// PowerOn boots a real node whose power is off, and returns when its programs run: it is
// registered and Ready some seconds later.
func (c *Cluster) PowerOn(t testing.TB, node string) {
	t.Helper()
	if err := c.SwitchOn(t, node); err != nil {
		t.Fatal(err)
	}
}

// SwitchOn is PowerOn for a test that wants it refused.
func (c *Cluster) SwitchOn(t testing.TB, node string) error {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	return c.plane.PowerOn(ctx, node)
}

// Import gives every real node the images of an archive, as internal/image writes it.
func (c *Cluster) Import(t testing.TB, archive string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := c.plane.Import(ctx, archive); err != nil {
		t.Fatal(err)
	}
}

// HTTP is a client that is where the control plane of real nodes is: it reaches pods and
// Services by their addresses, with a connection for each request.
func (c *Cluster) HTTP() *http.Client { return &http.Client{Transport: c.plane.Transport()} }

// NodeLogs is the folder with the logs of a real node's programs and pods.
func (c *Cluster) NodeLogs(node string) string { return c.plane.NodeLogs(node) }

// Manifests is the folder with the static pods of a real node.
func (c *Cluster) Manifests(node string) string { return c.plane.Manifests(node) }
