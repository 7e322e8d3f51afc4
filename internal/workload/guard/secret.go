package guard

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"
)

// longest is how many bytes of what a cluster says are shown.
const longest = 500

// longestText is how many are looked at.
const longestText = 64 << 10

// secrets are what must not get into a message, not even when a cluster sends
// it back.
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

// describe makes the error of a request one line that says the same whenever the
// same goes wrong, without secrets.
func (s secrets) describe(err error) error { return errors.New(s.line(reason(err))) }

// line makes a text one line that may be shown: without secrets, without characters
// that do something to who reads it, and not too long.
func (s secrets) line(text string) string {
	if len(text) > longestText {
		text = text[:longestText]
	}
	text = strings.ToValidUTF8(text, "?")
	for _, secret := range s {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return Printable(strings.Join(strings.Fields(strings.Map(visible, text)), " "), longest)
}

// Printable makes a text one that may be shown: without characters that do something
// to who reads it, but for the ends of lines, and cut behind so many bytes.
func Printable(text string, longest int) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	lines := strings.Split(strings.ToValidUTF8(text, "?"), "\n")
	for i := range lines {
		lines[i] = strings.Map(visible, lines[i])
	}
	return strings.Join(lines, "\n")
}

// visible replaces what cannot be seen, such as escape sequences of terminals and
// marks that turn the direction of a text, by a space.
func visible(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// reason leaves out of an error what differs from request to request, such as
// the port that it came from.
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

// Line makes a text one line that may be shown.
func Line(text string) string { return secrets{}.line(text) }
