package guard

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// longest limits the bytes of a text that are shown, longestText those that are read.
const longest, longestText = 500, 64 << 10

// secrets must not get into a message, not even when a cluster sends them back.
type secrets []string

func secretsOf(config *rest.Config) secrets {
	all := secrets{config.BearerToken, config.Password}
	if config.Password != "" {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(config.Username+":"+config.Password)))
	}
	if config.Proxy != nil {
		if proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "cluster"}}); err == nil && proxy != nil {
			password, _ := proxy.User.Password()
			all = append(all, password)
		}
	}
	return all
}

// describe returns the error of a request in one line without secrets, which is the same
// whenever the same goes wrong.
func (s secrets) describe(err error) error { return errors.New(s.line(reason(err))) }

// line returns a text in one printable line without secrets.
func (s secrets) line(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), longestText)], "?")
	for _, secret := range s {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return excerpt.Line(text, longest)
}

// Line returns a text in one printable line.
func Line(text string) string { return secrets{}.line(text) }

// reason leaves out of an error what differs between requests, such as the local port.
func reason(err error) string {
	var timeout net.Error
	var lookup *net.DNSError
	var operation *net.OpError
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &lookup):
		return lookup.Err + ": " + lookup.Name
	case errors.As(err, &operation):
		return operation.Err.Error()
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}
