package cluster

import (
	"net"
	"testing"
)

// WebhookPort has the API server ask a webhook server of the test, which is to
// listen at this free port of 127.0.0.1. Its certificate goes into the chart's
// Secret, in the namespace of the manager.
func (c *Cluster) WebhookPort(t testing.TB) int {
	t.Helper()
	port := freePort(t)
	if err := c.plane.InstallChart(t.Context(), port); err != nil {
		t.Fatal(err)
	}
	return port
}

// CallerCA is a PEM file with the authority of the certificate that the API server
// shows to webhooks; its common name is sandbox.CallerName.
func (c *Cluster) CallerCA() string { return c.plane.CallerCA() }

// freePort is a port of 127.0.0.1 that nobody listens at.
func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	return listener.Addr().(*net.TCPAddr).Port
}
