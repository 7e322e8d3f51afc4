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

// parting is how long a server that is to end answers on, closing each connection with
// its answer. An API server writes on connections that it has kept, and neither asks
// again nor asks somebody else if one is closed in the moment in which it writes; by then
// it has none left that it uses.
const parting = 3 * time.Second

// Server answers the API server. It is not run by the manager, which releases the Lease
// of its leader only when all that it runs has ended: parting would delay the next leader.
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
		return nil, fmt.Errorf("address of the webhooks %s: the port must be a number", options.Address)
	}
	return &Server{server: webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS13
		config.GetCertificate = options.Certificate.Get
		options.Client.demand(config)
	}}})}, nil
}

// register has the handler answer under the path.
func (s *Server) register(path string, handler http.Handler) {
	s.server.Register(path, s.answer(handler))
}

// answer has a handler answer while the caller waits: who has been heard is answered also
// when the manager is to end, since a look at the API server that is broken off would be a
// refusal.
func (s *Server) answer(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		within := answerWithin(request)
		// A caller that drips would take memory for as long as it likes.
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

// Serve answers until the context ends, and then for 3 s more.
//
// Errors: the address cannot be listened on.
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
