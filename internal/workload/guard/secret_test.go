package guard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/test/step/remote"
)

func TestDescribedErrorIsStableAndHoldsNoSecret(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example", User: url.UserPassword("me", "proxy-password")}
	secrets := secretsOf(&rest.Config{
		BearerToken: remote.Token, Username: "admin", Password: "s3cret", Proxy: http.ProxyURL(proxy),
	})
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 51234}
	tests := map[string]struct {
		err  error
		want string
	}{
		"no answer": {
			&url.Error{Op: "Get", URL: "https://east/readyz", Err: context.DeadlineExceeded}, "no answer in time",
		},
		"a connection that is refused": {
			&url.Error{Op: "Get", URL: "https://east/readyz", Err: &net.OpError{
				Op: "dial", Net: "tcp", Addr: address, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
			}},
			"connect: connection refused",
		},
		"an unknown name": {
			&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "east.example", Server: "10.0.0.10:53", IsNotFound: true}},
			"no such host: east.example",
		},
		"a request": {
			&url.Error{Op: "Get", URL: "https://admin:" + remote.Token + "@east", Err: errors.New("EOF")}, "EOF",
		},
		"secrets that come back": {
			errors.New(remote.Token + ", s3cret,\n YWRtaW46czNjcmV0 and proxy-password"), "(secret), (secret), (secret) and (secret)",
		},
		"a long text": {errors.New(strings.Repeat("x", 2*longest)), strings.Repeat("x", longest-3) + "…"},
		"no text":     {errors.New("\xff"), "?"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := secrets.describe(test.err).Error(); got != test.want {
				t.Errorf("described as %q, want %q", got, test.want)
			}
		})
	}
}
