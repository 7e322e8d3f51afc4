package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// parting bounds the time in which a stopping server still responds, closing each connection. An
// API server that writes on a closed kept connection does not retry; after parting it has none
// left.
const parting = 3 * time.Second

// Server serves the webhooks. The manager does not run it, as parting would delay the release of the
// leader's Lease.
type Server struct {
	server webhook.Server
	ending atomic.Bool
}

func newServer(options Options) (*Server, error) {
	if err := options.Client.check(); err != nil {
		return nil, err
	}
	host, text, err := net.SplitHostPort(options.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the webhooks: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("address of the webhooks %s: invalid port", options.Address)
	}
	return &Server{server: webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS13
		config.GetCertificate = options.Certificate.Get
		options.Client.demand(config)
	}}})}, nil
}

// answer bounds a handler by the caller's timeout. A request is completed even if the manager stops,
// as an interrupted read of the API server would be a refusal.
func (s *Server) answer(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		within := answerWithin(request)
		// A slow body would take memory.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), within)
		defer cancel()
		defer context.AfterFunc(request.Context(), func() {
			if !s.ending.Load() {
				cancel()
			}
		})()
		handler.ServeHTTP(w, request.WithContext(ctx))
	})
}

// Serve responds until the context ends, and for parting afterwards.
func (s *Server) Serve(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		s.ending.Store(true)
		time.AfterFunc(parting, end)
	})()
	if err := s.server.Start(serving); err != nil {
		return fmt.Errorf("serve the webhooks: %w", err)
	}
	return nil
}
