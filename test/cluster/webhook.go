package cluster

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// WebhookPort has the API server ask a webhook server of the test, which is to
// listen at this free port of 127.0.0.1. Its certificate goes into the chart's
// Secret, in the namespace of the manager.
func (c *Cluster) WebhookPort(t testing.TB) int {
	t.Helper()
	port := FreePort(t)
	if err := c.plane.InstallChart(t.Context(), port); err != nil {
		t.Fatal(err)
	}
	return port
}

// CallerCA is a PEM file with the authority of the certificate that the API server
// shows to webhooks; its common name is sandbox.CallerName.
func (c *Cluster) CallerCA() string { return c.plane.CallerCA() }

// FreePort is a port of 127.0.0.1 that nobody listens at.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := sandbox.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
